package integration

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestOperatorBeforeBackups starts an operator whose host has no ClusterRegistryBackups yet, as
// one that was upgraded by its image alone: it drives registries and says what is missing, lets
// them go, and takes up backups when they are there.
func TestOperatorBeforeBackups(t *testing.T) {
	t.Parallel()
	h := newOperatorHost(t)
	framework.InstallCertManagerAPI(t, h.kubectl)
	h.kubectl.Run("delete", "crd", "clusterregistrybackups.operator.clusterregistry.io")
	s := h.at(t)
	operator := framework.StartOperator(t, h.Host)

	s.apply("fleet", "{mode: Independent, deletionPolicy: Delete}")
	s.ready("fleet")
	s.eventually("the operator to say what is missing", func(context.Context) error {
		if !operator.Said("the operator can't read ClusterRegistryBackups: apply the CustomResourceDefinitions and the roles of the operator's release") {
			return errors.New("it does not")
		}
		return nil
	})
	s.gone(s.deleted("fleet"))

	h.kubectl.Run("apply", "-f", filepath.Join(framework.Root(t), "manifests", "operator", "crd"))
	h.kubectl.Established("crd/clusterregistrybackups.operator.clusterregistry.io")
	s.apply("fleet", "{mode: Independent, deletionPolicy: Delete}")
	s.ready("fleet")
	framework.Create(t, s, s.backup("late", func(*operatorv1alpha1.ClusterRegistryBackup) {}))
	s.phase("late", operatorv1alpha1.BackupPending, "has no spec.backup")
}
