package install

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// authorityDeleted deletes the Secret of the CA that has signed the servers'
// certificate, while clients write through the host. cert-manager makes another
// CA; the host never loses its way to the servers, and trusts that one alone in
// the end.
func authorityDeleted(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Pending(2*rate), framework.Named("authority"))
	load.Settle(t)
	before := servingCA(t, e, registry)
	if err := e.Client.Delete(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the host to trust the new CA of the servers, and no other", func(ctx context.Context) error {
		now, service := &corev1.Secret{}, &apiregistrationv1.APIService{}
		if err := e.Get(ctx, before.Name, now); err != nil {
			return err
		}
		if err := e.Client.Get(ctx, client.ObjectKey{Name: "v1alpha1.clusterregistry.k8s.io"}, service); err != nil {
			return err
		}
		if string(now.Data[corev1.TLSCertKey]) == string(before.Data[corev1.TLSCertKey]) {
			return errors.New("cert-manager has not issued another CA yet")
		}
		if string(service.Spec.CABundle) != string(now.Data[corev1.TLSCertKey]) {
			return fmt.Errorf("it trusts\n%s", service.Spec.CABundle)
		}
		return nil
	})
	e.WaitReady(registry)
	load.Settle(t)
	report := load.Stop()
	t.Logf("the CA of the servers was replaced: %s", report)
	e.Unharmed(registry, report)
}

// servingCA reads the Secret of the CA that signs the servers' certificate.
func servingCA(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := e.Get(t.Context(), registry.Name+"-serving-ca", secret); err != nil {
		t.Fatal(err)
	}
	return secret
}
