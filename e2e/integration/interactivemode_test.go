package integration

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	applyv1beta1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestInteractiveMode writes clusters with and without the mode of a program, and lets
// clients do all that they can with them: what is stored is what was written.
func TestInteractiveMode(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clusters, alpha, ctx := client.ClusterregistryV1beta1().Clusters(), client.ClusterregistryV1alpha1().Clusters(), t.Context()
	exec := &v1beta1.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "login"}
	never := exec.DeepCopy()
	never.InteractiveMode = v1beta1.InteractiveNever
	wanted := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "asking"}, Spec: v1beta1.ClusterSpec{Access: []v1beta1.Access{
		{Name: "default", Audience: v1beta1.AudienceUser, Exec: exec}, {Name: "never", Audience: v1beta1.AudienceUser, Exec: never},
	}}}
	if _, err := clusters.Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect := func(reason string, first, second v1beta1.InteractiveMode) {
		t.Helper()
		c, err := clusters.Get(ctx, "asking", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if a := c.Spec.Access; a[0].Exec.InteractiveMode != first || a[1].Exec.InteractiveMode != second {
			t.Errorf("%s: the modes are %q and %q, want %q and %q", reason, a[0].Exec.InteractiveMode, a[1].Exec.InteractiveMode, first, second)
		}
		raw := stored(ctx, t, etcd, "asking").(*v1beta1.Cluster)
		if a := raw.Spec.Access; a[0].Exec.InteractiveMode != first || a[1].Exec.InteractiveMode != second {
			t.Errorf("%s: the modes are stored as %q and %q, want %q and %q", reason, a[0].Exec.InteractiveMode, a[1].Exec.InteractiveMode, first, second)
		}
	}
	expect("created", "", v1beta1.InteractiveNever)
	for _, write := range []struct {
		reason        string
		kind          types.PatchType
		content       string
		first, second v1beta1.InteractiveMode
	}{
		{"merge patch", types.MergePatchType, `{"spec":{"displayName":"East"}}`, "", v1beta1.InteractiveNever},
		{"JSON patch that sets it", types.JSONPatchType, `[{"op":"replace","path":"/spec/access/0/exec/interactiveMode","value":"Always"}]`, v1beta1.InteractiveAlways, v1beta1.InteractiveNever},
		{"JSON patch that removes it", types.JSONPatchType, `[{"op":"remove","path":"/spec/access/0/exec/interactiveMode"}]`, "", v1beta1.InteractiveNever},
		{"strategic merge patch", types.StrategicMergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, "", v1beta1.InteractiveNever},
	} {
		if _, err := clusters.Patch(ctx, "asking", write.kind, []byte(write.content), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", write.reason, err)
		}
		expect(write.reason, write.first, write.second)
	}
	if _, err := alpha.Patch(ctx, "asking", types.MergePatchType, []byte(`{"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"east:6443"}]}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	expect("written through v1alpha1", "", v1beta1.InteractiveNever)
	apply := applyv1beta1.Cluster("asking").WithSpec(applyv1beta1.ClusterSpec().WithAccess(applyv1beta1.Access().WithName("never").WithAudience(v1beta1.AudienceUser).WithExec(
		applyv1beta1.ExecAccess().WithAPIVersion("client.authentication.k8s.io/v1").WithCommand("other"))))
	if _, err := clusters.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		t.Error(err)
	}
	expect("applied without it", "", v1beta1.InteractiveNever)
	_, err = clusters.Patch(ctx, "asking", types.MergePatchType, []byte(`{"spec":{"access":[{"name":"x","audience":"User","exec":{"apiVersion":"v1","command":"x","interactiveMode":"Sometimes"}}]}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a mode that is none: %v", err)
	}
}
