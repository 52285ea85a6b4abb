package shipping

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

const cluster = `kubectl create -f - <<EOF
{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: kept}, spec: {kubernetesApiEndpoints: {serverEndpoints: [{serverAddress: kept.example}]}}}
EOF
`

// TestReinstall deletes the operator in the wrong order, with its definition and
// so with each registry. Nobody can finish that until the operator is installed
// again, as docs/how-to/uninstall.md says; a registry of the same name then has the data.
func TestReinstall(t *testing.T) {
	e := framework.New(t).WithOperator()
	noOthers(t, e)
	before := e.Sample("aggregated-single.yaml")
	d := newDesk(t, e)
	content, err := yaml.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	d.put("fleet.yaml", string(content))
	e.Install(before)
	e.WaitReady(before)
	d.run(cluster)

	defer d.restore()
	d.run("kubectl delete --wait=false -f install.yaml")
	waitOperatorGone(e)
	checkHangs(t, e, before)

	d.run(block(t, "docs/how-to/uninstall.md", "sh", "kubectl wait --for=delete crd/"))
	after := e.Sample("aggregated-single.yaml")
	e.WaitReady(after)
	if after.UID == before.UID {
		t.Error("the registry is the one that was deleted")
	}
	if after.Status.Etcd.ClusterID != before.Status.Etcd.ClusterID {
		t.Errorf("etcd was %s, and is now %s", before.Status.Etcd.ClusterID, after.Status.Etcd.ClusterID)
	}
	if out := d.run("kubectl get crc -o name"); out != "cluster.clusterregistry.k8s.io/kept\n" {
		t.Errorf("the clusters are %q", out)
	}
	e.Remove(after)
}

// noOthers fails the test when its deletion would hit other registries.
func noOthers(t *testing.T, e *framework.Env) {
	t.Helper()
	var all operatorv1alpha1.ClusterRegistryList
	if err := e.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Items {
		t.Fatalf("this test deletes every registry of the cluster, and there is %s/%s already; delete it first", r.Namespace, r.Name)
	}
}

// waitOperatorGone waits until the operator is gone with its namespace.
func waitOperatorGone(e *framework.Env) {
	e.Eventually("the operator's namespace to be gone", func(ctx context.Context) error {
		var namespace corev1.Namespace
		err := e.Client.Get(ctx, client.ObjectKey{Name: framework.OperatorNamespace}, &namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it is there: %v", namespace.Status)
	})
}

// checkHangs checks that the definition and a registry wait for somebody to take
// the registry apart.
func checkHangs(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: "clusterregistries.operator.clusterregistry.io"}, &crd); err != nil {
		t.Fatal(err)
	}
	var left operatorv1alpha1.ClusterRegistry
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(registry), &left); err != nil {
		t.Fatal(err)
	}
	if crd.DeletionTimestamp == nil || left.DeletionTimestamp == nil || len(left.Finalizers) == 0 {
		t.Fatal(errors.New("nothing is deleted, or nothing hangs"))
	}
}
