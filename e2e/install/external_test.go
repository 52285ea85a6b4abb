package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixExternalEtcd gives a registry an etcd that someone else runs, and makes
// every mistake on the way. Each is named, and gone when it is corrected. In "make test",
// e2e/integration has that with a host alone.
func TestMatrixExternalEtcd(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	e.Apply("etcd.yaml", map[string]string{"Namespace": e.Namespace, "Etcd": framework.FindImage(t, "etcd").Reference})
	e.Eventually("etcd to serve", func(ctx context.Context) error { return e.PodReady(ctx, "etcd-0") })
	right := fmt.Sprintf("https://etcd-0.etcd.%s.svc:2379", e.Namespace)
	wrong := strings.Replace(right, ":2379", ":2378", 1)

	registry := e.Sample("external-etcd.yaml")
	registry.Spec.Server.Replicas = 1
	registry.Spec.Server.Service = &operatorv1alpha1.Service{Type: corev1.ServiceTypeNodePort}
	registry.Spec.Etcd.External.Endpoints = []operatorv1alpha1.EtcdEndpoint{operatorv1alpha1.EtcdEndpoint(wrong)}
	e.Install(registry)
	refused := func(reason string, texts ...string) {
		t.Helper()
		e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, reason, texts...)
		t.Log(etcdMessage(registry))
	}
	refused(operatorv1alpha1.ReasonSecretInvalid, "Secret etcd-client", "does not exist")
	fill(t, e, "right", "foreign")
	refused(operatorv1alpha1.ReasonExternalUnreachable, wrong, "connection refused")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Etcd.External.Endpoints[0] = operatorv1alpha1.EtcdEndpoint(right)
	})
	refused(operatorv1alpha1.ReasonExternalUnreachable, right, "presents a certificate that the CA given for etcd did not sign")
	fill(t, e, "foreign", "right")
	refused(operatorv1alpha1.ReasonExternalUnreachable, right, "refuses the client certificate")
	fill(t, e, "right", "right")
	e.WaitReady(registry)

	if status := registry.Status; status.Etcd.Ready != "1/1" || status.Etcd.ClusterID == "" || status.EtcdVersion != framework.FindImage(t, "etcd").Tag {
		t.Errorf("the status of etcd %s is %+v", status.EtcdVersion, status.Etcd)
	}
	newest(t, e.Kubeconfig(registry)).Stdin(fmt.Sprintf(cluster, "east")).Run("create", "-f", "-")
	var keys string
	e.Eventually("etcd to list its keys", func(ctx context.Context) (err error) {
		keys, err = e.Exec(ctx, "etcd-0", "etcdctl", "--endpoints=https://localhost:2379", "--cacert=/tls/ca.crt", "--cert=/tls/tls.crt", "--key=/tls/tls.key", "get", "--prefix", "--keys-only", "/")
		return err
	})
	if !strings.Contains(keys, "/registry/clusterregistry.k8s.io/clusters/east") {
		t.Errorf("the external etcd has the keys %s", keys)
	}
}

// fill writes the Secret that the registry names: the key pair of one Secret, and
// the CA of another.
func fill(t *testing.T, e *framework.Env, pair, ca string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "etcd-client", Namespace: e.Namespace}, Data: map[string][]byte{}}
	read := func(from string, keys ...string) {
		e.Eventually("Secret "+from+" to be complete", func(ctx context.Context) error {
			var source corev1.Secret
			if err := e.Get(ctx, from, &source); err != nil {
				return err
			}
			for _, key := range keys {
				if secret.Data[key] = source.Data[key]; len(secret.Data[key]) == 0 {
					return fmt.Errorf("it has no %s", key)
				}
			}
			return nil
		})
	}
	read(pair, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	read(ca, "ca.crt")
	err := e.Client.Create(t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = e.Client.Update(t.Context(), secret)
	}
	if err != nil {
		t.Fatal(err)
	}
}
