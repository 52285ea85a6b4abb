package backups

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestSnapshotReadOnly has the Job of a snapshot be neither made nor removed in a pass that is
// read-only, which is an error for who relies on it.
func TestSnapshotReadOnly(t *testing.T) {
	objects := operandtest.New(t, "{spec: {etcd: {replicas: 1}}}")
	objects.Freeze("spec.paused is false")
	host := snapshotHost{objects}
	for what, err := range map[string]error{
		"removed": host.DeleteJob(t.Context()),
		"made":    host.Apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{"kind": "Job"}}),
	} {
		if !errors.Is(err, apply.ErrReadOnly) {
			t.Errorf("the Job is %s: %v", what, err)
		}
	}
}
