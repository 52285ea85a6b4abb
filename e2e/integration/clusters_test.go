package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	applyv1alpha1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1alpha1"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/session"
)

// TestClusters uses the API as its clients do, through the aggregators of the
// oldest and the newest host.
func TestClusters(t *testing.T) {
	t.Parallel()
	for _, version := range hosts {
		t.Run(version, func(t *testing.T) {
			host, registry := framework.StartAggregated(t, version)
			testAPI(t, host.Config)
			t.Run("kubectl", func(t *testing.T) { session.Run(t, host.Kubeconfig("admin", "system:masters")) })
			t.Run("no category", func(t *testing.T) {
				// kubectl would list clusters where someone asks for a ClusterRegistry.
				kubectl := framework.NewKubectl(t, newest, host.Kubeconfig("admin", "system:masters"))
				if out := kubectl.Run("api-resources", "--categories=clusterregistry", "--output=name"); out != "" {
					t.Errorf("in the category clusterregistry are: %s", out)
				}
			})
			t.Run("compression", func(t *testing.T) { testNoCompression(t, host, registry) })
			t.Run("webhooks", func(t *testing.T) { testWebhooks(t, host) })
			t.Run("admission", func(t *testing.T) { testAdmission(t, host) })
			t.Run("strangers", func(t *testing.T) { testStrangers(t, host, registry) })
		})
	}
}

// testAPI uses the API in both encodings.
func testAPI(t *testing.T, config *rest.Config) {
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		encoded := rest.CopyConfig(config)
		encoded.ContentType, encoded.AcceptContentTypes = encoding, encoding
		clusters := clustersOf(t, encoded)
		t.Run(encoding, func(t *testing.T) {
			t.Run("writes", func(t *testing.T) { testWrites(t, clusters) })
			t.Run("status", func(t *testing.T) { testStatus(t, clusters) })
			t.Run("selection", func(t *testing.T) { testSelection(t, clusters) })
			t.Run("watch", func(t *testing.T) { testWatch(t, clusters) })
		})
		if err := clusters.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func cluster(name string, labels map[string]string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       v1alpha1.ClusterSpec{KubernetesAPIEndpoints: v1alpha1.KubernetesAPIEndpoints{ServerEndpoints: []v1alpha1.ServerAddressByClientCIDR{{ServerAddress: name + ".example:6443"}}}},
	}
}

func testWrites(t *testing.T, clusters clustersv1alpha1.ClusterInterface) {
	ctx := t.Context()
	made, err := clusters.Create(ctx, cluster("east", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Generation != 1 || made.UID == "" || made.Status != nil {
		t.Errorf("created: %+v", made)
	}
	if _, err := clusters.Create(ctx, cluster("east", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	bad := cluster("bad", nil)
	bad.Spec.AuthInfo.Providers = []v1alpha1.AuthProviderConfig{{Name: "p", Config: map[string]string{"password": "x"}}}
	if _, err := clusters.Create(ctx, bad, metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "store a pointer to it") {
		t.Errorf("a password: %v", err)
	}

	made.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress = "moved.example:6443"
	made.Status = &v1alpha1.ClusterStatus{Version: v1alpha1.ClusterVersion{Kubernetes: "v9"}}
	updated, err := clusters.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Generation != 2 || updated.Status != nil {
		t.Errorf("an update of the spec, with a status, gave generation %d and status %v", updated.Generation, updated.Status)
	}
	if _, err := clusters.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	// Nothing but an absent cluster is created by an update.
	if _, err := clusters.Update(ctx, cluster("by-update", nil), metav1.UpdateOptions{}); err != nil {
		t.Errorf("update as create: %v", err)
	}
	if _, err := clusters.Create(ctx, cluster("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	if _, err := clusters.Get(ctx, "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run was stored: %v", err)
	}
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/labels","value":{"json":"yes"}}]`,
		types.MergePatchType:          `{"metadata":{"labels":{"merge":"yes"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"strategic":"yes"}}}`,
	} {
		if _, err := clusters.Patch(ctx, "by-update", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := clusters.Apply(ctx, applyv1alpha1.Cluster("applied"), metav1.ApplyOptions{FieldManager: "one", Force: true}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("server-side apply: %v", err)
	}
	for _, name := range []string{"east", "by-update"} {
		if err := clusters.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func testStatus(t *testing.T, clusters clustersv1alpha1.ClusterInterface) {
	ctx := t.Context()
	made, err := clusters.Create(ctx, cluster("reported", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress = "other.example"
	made.Labels = map[string]string{"through": "status"}
	made.Status = &v1alpha1.ClusterStatus{
		Version:    v1alpha1.ClusterVersion{Kubernetes: "v1.37.1"},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Probed", LastTransitionTime: metav1.Now()}},
	}
	updated, err := clusters.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress != "reported.example:6443" || updated.Labels != nil || updated.Generation != 1 {
		t.Errorf("spec or labels were written through the status: %+v", updated)
	}
	if updated.Status == nil || updated.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("status is %+v", updated.Status)
	}
	joined := `{"status":{"conditions":[{"type":"Joined","status":"True","reason":"Joined","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if updated, err = clusters.Patch(ctx, "reported", types.StrategicMergePatchType, []byte(joined), metav1.PatchOptions{}, "status"); err != nil || len(updated.Status.Conditions) != 2 {
		t.Fatalf("two controllers' conditions: %v, %+v", err, updated.Status)
	}
	updated.Status.Conditions[0].Status = "Perhaps"
	if _, err := clusters.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a status that is none: %v", err)
	}
}

func testSelection(t *testing.T, clusters clustersv1alpha1.ClusterInterface) {
	ctx := t.Context()
	for i := range 10 {
		if _, err := clusters.Create(ctx, cluster(fmt.Sprintf("c%d", i), map[string]string{"half": fmt.Sprint(i % 2)}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		options metav1.ListOptions
		want    int
	}{
		{metav1.ListOptions{LabelSelector: "half=0"}, 5},
		{metav1.ListOptions{LabelSelector: "half notin (0)", FieldSelector: "metadata.name!=reported"}, 5},
		{metav1.ListOptions{FieldSelector: "metadata.name=c3"}, 1},
		{metav1.ListOptions{FieldSelector: "status.version.kubernetes=v1.37.1"}, 1},
		{metav1.ListOptions{FieldSelector: "status.version.kubernetes=v1.37.1", ResourceVersion: "0"}, 1},
		{metav1.ListOptions{FieldSelector: "status.version.kubernetes=v0"}, 0},
	} {
		list, err := clusters.List(ctx, test.options)
		if err != nil || len(list.Items) != test.want {
			t.Errorf("%+v: %d clusters, %v; want %d", test.options, len(list.Items), err, test.want)
		}
	}
	if _, err := clusters.List(ctx, metav1.ListOptions{FieldSelector: "spec.nonsense=1"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "the fields are metadata.name, status.version.kubernetes") {
		t.Errorf("an unknown field: %v", err)
	}
	seen, pages := 0, 0
	for options := (metav1.ListOptions{Limit: 4}); ; pages++ {
		list, err := clusters.List(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if seen != 11 || pages != 2 {
		t.Errorf("11 clusters in pages of 4: saw %d on %d full pages", seen, pages)
	}
}

func testWatch(t *testing.T, clusters clustersv1alpha1.ClusterInterface) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// A WatchList: what is there, a bookmark that says that this was all, then changes.
	w, err := clusters.Watch(ctx, metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	added := 0
	for event := range w.ResultChan() {
		if event.Type == watch.Bookmark {
			break
		}
		added++
	}
	if added != 11 {
		t.Errorf("%d clusters before the bookmark, want 11", added)
	}
	if err := clusters.Delete(ctx, "c0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range w.ResultChan() {
		if event.Type == watch.Bookmark {
			continue
		}
		if c, ok := event.Object.(*v1alpha1.Cluster); !ok || event.Type != watch.Deleted || c.Name != "c0" {
			t.Errorf("event %s of %v", event.Type, event.Object)
		}
		return
	}
	t.Error("the watch ended")
}
