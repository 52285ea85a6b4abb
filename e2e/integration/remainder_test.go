package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	applyv1beta1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/scheme"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// remainderAnnotation is where a release stores what the stored version can't hold.
const remainderAnnotation = "clusterregistry.k8s.io/remainder"

// key is where a cluster is in etcd.
func key(name string) string { return "/registry/clusterregistry.k8s.io/clusters/" + name }

// object is a cluster of any version.
type object interface {
	runtime.Object
	metav1.Object
}

// stored returns a cluster as it is in etcd, of the version that it is stored in.
func stored(ctx context.Context, t *testing.T, etcd *framework.Etcd, name string) object {
	t.Helper()
	content, err := etcd.Client.Get(ctx, key(name))
	if err != nil || len(content.Kvs) != 1 {
		t.Fatalf("the stored value of %s: %v, %v", name, err, content)
	}
	c, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(content.Kvs[0].Value, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.(object)
}

// store writes a cluster to etcd, around the server.
func store(ctx context.Context, t *testing.T, etcd *framework.Etcd, c object) {
	t.Helper()
	data, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Client.Put(ctx, key(c.GetName()), string(data)); err != nil {
		t.Fatal(err)
	}
}

// TestRemainders writes what a newer release would have stored, and then lets
// clients do all that they can with it: nobody sees it, and nothing loses it.
func TestRemainders(t *testing.T) {
	t.Parallel()
	const newer = `{"spec":{"displayName":"East"}}`
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd)
	clusters, beta, ctx := clustersOf(t, config), betaOf(t, config), t.Context()
	if _, err := clusters.Create(ctx, cluster("east", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := clusters.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=east"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	raw := stored(ctx, t, etcd, "east")
	raw.SetAnnotations(map[string]string{remainderAnnotation: `{"v2":` + newer + `}`})
	store(ctx, t, etcd, raw)

	for _, write := range []struct {
		reason string
		do     func() error
	}{
		{"nothing yet", func() error { return nil }},
		{"replace", func() error {
			c := cluster("east", map[string]string{"by": "replace"})
			_, err := clusters.Update(ctx, c, metav1.UpdateOptions{})
			return err
		}},
		{"JSON patch that replaces all annotations", patch(clusters, types.JSONPatchType, `[{"op":"add","path":"/metadata/annotations","value":{"by":"json"}}]`)},
		{"merge patch that removes all annotations", patch(clusters, types.MergePatchType, `{"metadata":{"annotations":null}}`)},
		{"strategic merge patch", patch(clusters, types.StrategicMergePatchType, `{"metadata":{"labels":{"by":"strategic"}}}`)},
		{"server-side apply", func() error {
			_, err := beta.Apply(ctx, applyv1beta1.Cluster("east").WithLabels(map[string]string{"by": "apply"}), metav1.ApplyOptions{FieldManager: "test", Force: true})
			return err
		}},
		{"status update", func() error {
			c, err := clusters.Get(ctx, "east", metav1.GetOptions{})
			if err != nil {
				return err
			}
			c.Status = &v1alpha1.ClusterStatus{Version: v1alpha1.ClusterVersion{Kubernetes: "v1"}}
			_, err = clusters.UpdateStatus(ctx, c, metav1.UpdateOptions{})
			return err
		}},
		{"status patch", patch(clusters, types.MergePatchType, `{"status":{"version":{"kubernetes":"v2"}}}`, "status")},
		{"deletion that a finalizer holds up", func() error {
			if err := patch(clusters, types.MergePatchType, `{"metadata":{"finalizers":["example.com/test"]}}`)(); err != nil {
				return err
			}
			return clusters.Delete(ctx, "east", metav1.DeleteOptions{})
		}},
	} {
		if err := write.do(); err != nil {
			t.Errorf("%s: %v", write.reason, err)
		}
		// Beside it there may be how v1alpha1 spells the address.
		got, members := stored(ctx, t, etcd, "east").GetAnnotations()[remainderAnnotation], map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(got), &members); err != nil || string(members["v2"]) != newer {
			t.Errorf("after %s, the remainder is %q, %v", write.reason, got, err)
		}
		// After the list of what is newest, the watch cache has it, too.
		for _, version := range []string{"", "0"} {
			list, err := clusters.List(ctx, metav1.ListOptions{ResourceVersion: version})
			if err != nil || len(list.Items) != 1 || len(list.Items[0].Annotations[remainderAnnotation]) > 0 {
				t.Errorf("after %s, list of version %q shows it: %v, %v", write.reason, version, err, list)
			}
			c, err := clusters.Get(ctx, "east", metav1.GetOptions{ResourceVersion: version})
			if err != nil || len(c.Annotations[remainderAnnotation]) > 0 {
				t.Errorf("after %s, get of version %q shows it: %v, %v", write.reason, version, err, c)
			}
		}
	}
	for event := range w.ResultChan() {
		c, ok := event.Object.(*v1alpha1.Cluster)
		if !ok || c.Annotations[remainderAnnotation] != "" {
			t.Fatalf("the watch shows it: %v", event)
		}
		if event.Type == watch.Modified && c.DeletionTimestamp != nil {
			break
		}
	}
	testRemaindersOfClients(t, clusters, beta)
	testNoChangeWithARemainder(t, etcd, beta)
}

// testRemaindersOfClients makes sure that nobody sets one.
func testRemaindersOfClients(t *testing.T, clusters clustersv1alpha1.ClusterInterface, beta clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	annotation := map[string]string{remainderAnnotation: "mine"}
	for reason, do := range map[string]func() error{
		"create": func() error {
			c := cluster("west", nil)
			c.Annotations = annotation
			_, err := clusters.Create(ctx, c, metav1.CreateOptions{})
			return err
		},
		"replace": func() error {
			c := cluster("east", nil)
			c.Annotations = annotation
			_, err := clusters.Update(ctx, c, metav1.UpdateOptions{})
			return err
		},
		"patch": patch(clusters, types.MergePatchType, `{"metadata":{"annotations":{"`+remainderAnnotation+`":"mine"}}}`),
		"apply": func() error {
			_, err := beta.Apply(ctx, applyv1beta1.Cluster("east").WithAnnotations(annotation), metav1.ApplyOptions{FieldManager: "other", Force: true})
			return err
		},
	} {
		if err := do(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the server alone keeps this annotation") {
			t.Errorf("%s with a remainder: %v", reason, err)
		}
	}
}

// testNoChangeWithARemainder makes sure that a controller that applies the same
// again and again writes once. Its earlier write is made an old one, for within
// a second nothing differs anyway.
func testNoChangeWithARemainder(t *testing.T, etcd *framework.Etcd, beta clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	raw := stored(ctx, t, etcd, "east")
	managers := raw.GetManagedFields()
	for i := range managers {
		managers[i].Time = &metav1.Time{Time: managers[i].Time.Add(-time.Hour)}
	}
	raw.SetManagedFields(managers)
	store(ctx, t, etcd, raw)
	before, err := beta.Get(ctx, "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := beta.Apply(ctx, applyv1beta1.Cluster("east").WithLabels(map[string]string{"by": "apply"}), metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("an apply that changes nothing: %v, version %s became %s", err, before.ResourceVersion, after.ResourceVersion)
	}
}

// patch returns the write of a patch to the cluster east.
func patch(clusters clustersv1alpha1.ClusterInterface, kind types.PatchType, content string, subresources ...string) func() error {
	return func() error {
		_, err := clusters.Patch(context.Background(), "east", kind, []byte(content), metav1.PatchOptions{}, subresources...)
		return err
	}
}
