package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	applyv1beta1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// betaOf returns a client of v1beta1.
func betaOf(t *testing.T, config *rest.Config) clustersv1beta1.ClusterInterface {
	t.Helper()
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients.ClusterregistryV1beta1().Clusters()
}

// richSpec uses every field that v1alpha1 lacks.
func richSpec() v1beta1.ClusterSpec {
	return v1beta1.ClusterSpec{
		DisplayName: "East", ID: "east.example",
		Endpoints: []v1beta1.Endpoint{
			{Name: "inside", URL: "https://10.0.0.1:6443", ClientCIDRs: []string{"10.0.0.0/8", "192.168.0.0/16"}, TLSServerName: "kubernetes.default.svc"},
			{Name: "outside", URL: "https://east.example/k8s", ProxyURL: "socks5://proxy:1080"},
		},
		Access: []v1beta1.Access{
			{Name: "people", Audience: v1beta1.AudienceUser, Provider: &v1beta1.ProviderAccess{Type: "oidc", Config: map[string]string{"client-id": "kubernetes"}}},
			{Name: "login", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "kubelogin", Args: []string{"get-token"}, Env: []v1beta1.ExecEnvVar{{Name: "PROFILE", Value: "east"}}, InteractiveMode: v1beta1.InteractiveIfAvailable}},
			{Name: "issuer", Audience: v1beta1.AudienceUser, OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://idp.example", ClientID: "kubernetes", Scopes: []string{"groups"}}},
			{Name: "agent", Audience: v1beta1.AudienceController, ObjectRef: &v1beta1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "fleet", Name: "east"}},
		},
		Taints:    []v1beta1.Taint{{Key: "example.com/drain", Value: "now", Effect: v1beta1.TaintNoExecute}},
		Heartbeat: &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 5},
		Manager:   &v1beta1.Manager{Name: "fleet"},
		SourceRef: &v1beta1.SourceReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "default", Name: "east", UID: "u"},
	}
}

func richStatus() *v1beta1.ClusterStatus {
	seen := metav1.NewTime(metav1.Now().Rfc3339Copy().Time)
	available := metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "Probed", LastTransitionTime: seen}
	cpu := map[string]resource.Quantity{"cpu": resource.MustParse("4500m")}
	return &v1beta1.ClusterStatus{
		ObservedGeneration: 1, Conditions: []metav1.Condition{available}, Version: v1beta1.ClusterVersion{Kubernetes: "v1.37.1"},
		Properties: []v1beta1.Property{{Name: "region", Value: "eu", LastObservedTime: &seen}}, Capacity: cpu, Allocatable: cpu, Nodes: &v1beta1.NodeCount{Total: 3, Ready: 2},
		Reporters: []v1beta1.Reporter{{Name: "agent", LastSeen: &seen, Conditions: []metav1.Condition{available}}},
	}
}

// createRich enters a cluster with all that v1beta1 has.
func createRich(t *testing.T, clusters clustersv1beta1.ClusterInterface, name string) *v1beta1.Cluster {
	t.Helper()
	made, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: richSpec()}, metav1.CreateOptions{FieldManager: "rich"})
	if err != nil {
		t.Fatal(err)
	}
	made.Status = richStatus()
	if made, err = clusters.UpdateStatus(t.Context(), made, metav1.UpdateOptions{FieldManager: "rich"}); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestLossless lets a client of v1alpha1 do everything to a cluster that uses all
// of v1beta1: what he doesn't see stays as it is, what he changes is changed.
func TestLossless(t *testing.T) {
	t.Parallel()
	_, _, config := independent(t)
	old, clusters, ctx := clustersOf(t, config), betaOf(t, config), t.Context()
	want := createRich(t, clusters, "east")
	seen, err := old.Get(ctx, "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const shown = `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"192.168.0.0/16","serverAddress":"https://10.0.0.1:6443"},{"clientCIDR":"10.0.0.0/8","serverAddress":"https://10.0.0.1:6443"},` +
		`{"clientCIDR":"0.0.0.0/0","serverAddress":"https://east.example/k8s"},{"clientCIDR":"::/0","serverAddress":"https://east.example/k8s"}]},` +
		`"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"},"config":{"client-id":"kubernetes"}}]}}`
	if got, err := json.Marshal(seen.Spec); err != nil || string(got) != shown {
		t.Errorf("v1alpha1 shows %v\n%s", err, got)
	}

	for _, write := range []struct {
		reason string
		do     func() error
		change func(*v1beta1.Cluster)
	}{
		{reason: "replace without a change", do: replaceSeen(old, func(*v1alpha1.Cluster) {})},
		{reason: "replace from a manifest", do: func() error {
			_, err := old.Update(ctx, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: seen.Spec}, metav1.UpdateOptions{})
			return err
		}},
		{reason: "JSON patch", do: patch(old, types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":{"by":"json"}}]`)},
		{reason: "merge patch", do: patch(old, types.MergePatchType, `{"metadata":{"labels":{"by":"merge"}}}`)},
		{reason: "strategic merge patch", do: patch(old, types.StrategicMergePatchType, `{"metadata":{"labels":{"by":"strategic"}}}`)},
		{
			reason: "status patch", do: patch(old, types.MergePatchType, `{"status":{"version":{"kubernetes":"v1.38.0"}}}`, "status"),
			change: func(c *v1beta1.Cluster) { c.Status.Version.Kubernetes = "v1.38.0" },
		},
		{
			reason: "status without a condition", do: func() error {
				c, err := old.Get(ctx, "east", metav1.GetOptions{})
				if err == nil {
					c.Status.Conditions = nil
					_, err = old.UpdateStatus(ctx, c, metav1.UpdateOptions{})
				}
				return err
			},
			change: func(c *v1beta1.Cluster) { c.Status.Conditions = nil },
		},
		{
			reason: "another address", do: replaceSeen(old, func(c *v1alpha1.Cluster) {
				list := c.Spec.KubernetesAPIEndpoints.ServerEndpoints
				list[2].ServerAddress, list[3].ServerAddress = "moved.example:6443", "moved.example:6443"
			}),
			change: func(c *v1beta1.Cluster) { c.Spec.Endpoints[1].URL = "https://moved.example:6443" },
		},
		{
			reason: "a provider more, by JSON patch", do: patch(old, types.JSONPatchType, `[{"op":"add","path":"/spec/authInfo/providers/-","value":{"name":"new","type":{"name":"aws"}}}]`),
			change: func(c *v1beta1.Cluster) {
				c.Spec.Access = append(c.Spec.Access, v1beta1.Access{Name: "new", Audience: v1beta1.AudienceUser, Provider: &v1beta1.ProviderAccess{Type: "aws"}})
			},
		},
		{
			reason: "one endpoint alone, by merge patch", do: patch(old, types.MergePatchType, `{"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"moved.example:6443"}]}}}`),
			change: func(c *v1beta1.Cluster) { c.Spec.Endpoints = c.Spec.Endpoints[1:] },
		},
	} {
		if err := write.do(); err != nil {
			t.Errorf("%s: %v", write.reason, err)
		}
		if write.change != nil {
			write.change(want)
		}
		got, err := clusters.Get(ctx, "east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(got.Spec, want.Spec) || !apiequality.Semantic.DeepEqual(got.Status, want.Status) {
			t.Errorf("after %s:\n%s%s", write.reason, diff.Diff(want.Spec, got.Spec), diff.Diff(want.Status, got.Status))
		}
		if !strings.Contains(owned(got, "rich"), `"f:displayName"`) {
			t.Errorf("after %s, the manager of v1beta1's fields owns %s", write.reason, owned(got, "rich"))
		}
	}
}

// replaceSeen returns the write of a client that reads a cluster, changes it and
// writes it.
func replaceSeen(clusters interface {
	Get(context.Context, string, metav1.GetOptions) (*v1alpha1.Cluster, error)
	Update(context.Context, *v1alpha1.Cluster, metav1.UpdateOptions) (*v1alpha1.Cluster, error)
}, change func(*v1alpha1.Cluster)) func() error {
	return func() error {
		c, err := clusters.Get(context.Background(), "east", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(c)
		_, err = clusters.Update(context.Background(), c, metav1.UpdateOptions{})
		return err
	}
}

// owned returns the fields of a cluster that a manager owns.
func owned(c *v1beta1.Cluster, manager string) string {
	var out strings.Builder
	for _, entry := range c.ManagedFields {
		if entry.Manager == manager {
			out.WriteString(entry.FieldsV1.GetRawString())
		}
	}
	return out.String()
}

// TestPeculiaritiesOfV1alpha1 lets a client of v1beta1 write clusters as only
// v1alpha1 can spell them.
func TestPeculiaritiesOfV1alpha1(t *testing.T) {
	t.Parallel()
	_, _, config := independent(t)
	old, clusters, ctx := clustersOf(t, config), betaOf(t, config), t.Context()
	made := cluster("east", nil)
	made.Spec.KubernetesAPIEndpoints.ServerEndpoints = []v1alpha1.ServerAddressByClientCIDR{{ServerAddress: "https://east.example:6443"}, {ServerAddress: "2001:db8::1"}, {}}
	made.Spec.AuthInfo.Providers = []v1alpha1.AuthProviderConfig{{Type: v1alpha1.AuthProviderType{Name: "gcp"}}, {}}
	want, err := old.Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for reason, do := range map[string]func() error{
		"replace": func() error {
			c, err := clusters.Get(ctx, "east", metav1.GetOptions{})
			if err == nil {
				c.Spec.DisplayName = "East"
				_, err = clusters.Update(ctx, c, metav1.UpdateOptions{})
			}
			return err
		},
		"patch": func() error {
			_, err := clusters.Patch(ctx, "east", types.MergePatchType, []byte(`{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
			return err
		},
		"apply": func() error {
			_, err := clusters.Apply(ctx, applyv1beta1.Cluster("east").WithSpec(applyv1beta1.ClusterSpec().WithEndpoints(applyv1beta1.Endpoint().WithName("endpoint-2").WithProxyURL("http://proxy"))), metav1.ApplyOptions{FieldManager: "new"})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		got, err := old.Get(ctx, "east", metav1.GetOptions{})
		if err != nil || !apiequality.Semantic.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("%s: %v\n%s", reason, err, diff.Diff(want.Spec, got.Spec))
		}
	}
}
