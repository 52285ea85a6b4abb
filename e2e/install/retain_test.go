package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestRetain deletes a registry, whose data outlives it, and lets another one of its name and
// of another size take over. It must not while it finds another CA. Its etcd comes up as it
// was, and is then scaled, and it hides what the first one hid, since its spec says nothing of
// visibility.
func TestRetain(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	before := independent(e, "team")
	before.Spec.Server.Authorization = &operatorv1alpha1.Authorization{Visibility: operatorv1alpha1.VisibilityClusterSets}
	e.Install(before)
	e.WaitReady(before)
	owner := newest(t, e.Kubeconfig(before))
	owner.Stdin(fmt.Sprintf(cluster, "kept")).Run("create", "-f", "-")
	owner.Run("create", "clusterrolebinding", "outsider", "--clusterrole=clusterregistry:viewer", "--user=outsider")
	ca := leaf(t, e, "team-etcd-ca")
	e.Remove(before)
	retained := []string{"PersistentVolumeClaim %s/data-team-etcd-0", "ConfigMap %s/team-etcd-identity", "Issuer %s/team-selfsigned"}
	for _, name := range []string{"team-etcd-ca", "team-client-ca", "team-serving-ca"} {
		retained = append(retained, "Certificate %s/"+name, "Issuer %s/"+name, "Secret %s/"+name)
	}
	for i := range retained {
		retained[i] = fmt.Sprintf(retained[i], e.Namespace)
	}
	checkLeft(t, e, retained...)

	var right corev1.Secret
	if err := e.Get(t.Context(), "team-etcd-ca", &right); err != nil {
		t.Fatal(err)
	}
	foreign := framework.NewAuthority(t, "foreign").Secret()
	write := func(data map[string][]byte) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "team-etcd-ca", Namespace: e.Namespace}}
		e.Update(secret, func() { secret.Data = data })
	}
	write(foreign)
	after := independent(e, "team")
	after.Spec.Etcd.Replicas = 3
	e.Install(after)
	e.WaitCondition(after, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonIdentityMismatch, "Secret team-etcd-ca", "restore that Secret")
	t.Log(etcdMessage(after))
	write(right.Data)
	restored(t, e, right.Data)
	checkStillHidden(t, e, after)
	e.Eventually("etcd to have three members", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(after), after); err != nil {
			return err
		}
		if after.Status.Etcd.Ready != "3/3" || after.Status.Operation != nil {
			return fmt.Errorf("%s are ready, and the operation is %+v", after.Status.Etcd.Ready, after.Status.Operation)
		}
		return nil
	})
	e.WaitReady(after)
	if got, want := after.Status.Etcd, before.Status.Etcd; got.ClusterID != want.ClusterID || got.Members[0].Name != want.Members[0].Name || got.Members[0].ID != want.Members[0].ID {
		t.Errorf("etcd was %+v, and is now %+v", want, got)
	}
	if got := leaf(t, e, "team-etcd-ca"); !slices.Equal(got.RawSubjectPublicKeyInfo, ca.RawSubjectPublicKeyInfo) {
		t.Error("etcd's CA has another key than before")
	}
	if out := newest(t, e.Kubeconfig(after)).Run("get", "crc", "-o", "name"); out != "cluster.clusterregistry.k8s.io/kept\n" {
		t.Errorf("the clusters are %q", out)
	}
}

// restored waits until the CA of team's etcd is what it was, and stays so. cert-manager may still
// issue it with the foreign key: then it is written once more.
func restored(t *testing.T, e *framework.Env, data map[string][]byte) {
	t.Helper()
	e.Eventually("etcd's CA to be the right one", func(ctx context.Context) error {
		secret, certificate := &corev1.Secret{}, &certmanagerv1.Certificate{}
		if err := errors.Join(e.Get(ctx, "team-etcd-ca", secret), e.Get(ctx, "team-etcd-ca", certificate)); err != nil {
			return err
		}
		for _, condition := range certificate.Status.Conditions {
			if condition.Type == certmanagerv1.CertificateConditionIssuing && condition.Status == cmmetav1.ConditionTrue {
				return errors.New("it is being issued")
			}
		}
		if bytes.Equal(secret.Data[corev1.TLSPrivateKeyKey], data[corev1.TLSPrivateKeyKey]) {
			return nil
		}
		secret.Data = data
		return errors.Join(errors.New("it was issued with the foreign key"), e.Client.Update(ctx, secret))
	})
}

// checkStillHidden expects of a registry that took over the data of one with visibility
// ClusterSets that it hides clusters until someone approves to show them, and approves it.
func checkStillHidden(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	e.WaitCondition(registry, operatorv1alpha1.ConditionServerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonVisibilityNotApproved, "visibilityApprovedFor")
	sees := func() (string, error) {
		return newest(t, e.Kubeconfig(registry)).Try("get", "crc", "-o", "name", "--as=outsider")
	}
	e.Eventually("the outsider's list", func(context.Context) error {
		out, err := sees()
		if out != "" {
			t.Errorf("an outsider sees %q: %v", out, err)
		}
		return err
	})
	e.Update(registry, func() {
		registry.Spec.Server.Authorization = &operatorv1alpha1.Authorization{VisibilityApprovedFor: registry.Status.Visibility.ID}
	})
	e.Eventually("the outsider to see what was approved", func(context.Context) error {
		if out, err := sees(); err != nil || out != "cluster.clusterregistry.k8s.io/kept\n" {
			return fmt.Errorf("it is %q: %w", out, err)
		}
		return nil
	})
	e.WaitReady(registry)
}
