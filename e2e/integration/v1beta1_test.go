package integration

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	applyv1beta1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestV1beta1 uses v1beta1 as its clients do, in both encodings and with kubectl.
func TestV1beta1(t *testing.T) {
	t.Parallel()
	registry, authority, config := independent(t)
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		encoded := rest.CopyConfig(config)
		encoded.ContentType, encoded.AcceptContentTypes = encoding, encoding
		clusters := betaOf(t, encoded)
		t.Run(encoding, func(t *testing.T) {
			t.Run("writes", func(t *testing.T) { testBetaWrites(t, clusters) })
			t.Run("reporters", func(t *testing.T) { testReporters(t, clusters) })
			t.Run("watch", func(t *testing.T) { testBetaWatch(t, encoded) })
		})
		if err := clusters.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("discovery", func(t *testing.T) { testDiscovery(t, config) })
	t.Run("kubectl", func(t *testing.T) {
		kubeconfig := registry.Kubeconfig(t, authority.Issue("root", admins))
		for _, version := range []string{newest, "v1.32.13"} {
			t.Run(version, func(t *testing.T) {
				testBetaSession(t, framework.NewKubectl(t, version, kubeconfig))
				testTaints(t, framework.NewKubectl(t, version, kubeconfig))
			})
		}
	})
}

func testBetaWrites(t *testing.T, clusters clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	made := createRich(t, clusters, "writes")
	if made.Generation != 1 || made.Status.Nodes.Total != 3 {
		t.Errorf("created: %+v", made)
	}
	for _, test := range []struct {
		reason string
		change func(*v1beta1.Cluster)
		want   string
	}{
		{"an address without TLS", func(c *v1beta1.Cluster) { c.Spec.Endpoints[1].URL = "http://east" }, "spec.endpoints[1].url: Invalid value"},
		{"a password", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Config["password"] = "x" }, "spec.access[0].provider.config[password]: Forbidden"},
		{"two ways in one", func(c *v1beta1.Cluster) { c.Spec.Access[1].Provider = c.Spec.Access[0].Provider }, "must have exactly one of exec, oidc, objectRef and provider"},
		{"another id", func(c *v1beta1.Cluster) { c.Spec.ID = "other" }, "spec.id: Invalid value"},
		{"no source any more", func(c *v1beta1.Cluster) { c.Spec.SourceRef = nil }, "spec.sourceRef: Invalid value"},
	} {
		c := made.DeepCopy()
		test.change(c)
		if _, err := clusters.Update(ctx, c, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
	made.Spec.DisplayName = "West"
	made.Status = nil
	updated, err := clusters.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil || updated.Generation != 2 || updated.Status == nil {
		t.Fatalf("an update of the spec: %v, %+v", err, updated)
	}
	for kind, content := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"replace","path":"/spec/endpoints/0/tlsServerName","value":"json"}]`,
		types.MergePatchType:          `{"spec":{"heartbeat":{"periodSeconds":30}}}`,
		types.StrategicMergePatchType: `{"spec":{"endpoints":[{"name":"outside","proxyURL":"http://strategic"}]}}`,
	} {
		if updated, err = clusters.Patch(ctx, "writes", kind, []byte(content), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if s := updated.Spec; len(s.Endpoints) != 2 || s.Endpoints[0].TLSServerName != "json" || s.Heartbeat.PeriodSeconds != 30 || s.Heartbeat.ToleratedMisses != 5 || s.Endpoints[1].ProxyURL != "http://strategic" {
		t.Errorf("patched: %+v", s)
	}
	apply := applyv1beta1.Cluster("writes").WithSpec(applyv1beta1.ClusterSpec().WithEndpoints(applyv1beta1.Endpoint().WithName("third").WithURL("https://third.example")))
	if updated, err = clusters.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "third"}); err != nil || len(updated.Spec.Endpoints) != 3 {
		t.Errorf("an endpoint of another manager: %v, %+v", err, updated)
	}
	apply = applyv1beta1.Cluster("writes").WithSpec(applyv1beta1.ClusterSpec().WithDisplayName("Third"))
	if _, err := clusters.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "third"}); !apierrors.IsConflict(err) {
		t.Errorf("a field of another manager: %v", err)
	}
	for field, want := range map[string]int{"spec.id=east.example": 1, "spec.id=none": 0, "status.version.kubernetes=v1.37.1": 1} {
		list, err := clusters.List(ctx, metav1.ListOptions{FieldSelector: field})
		if err != nil || len(list.Items) != want {
			t.Errorf("%s: %v, %d clusters", field, err, len(list.Items))
		}
	}
	if _, err := clusters.List(ctx, metav1.ListOptions{FieldSelector: "spec.nonsense=1"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "the fields are metadata.name, spec.clusterSet, spec.id, status.version.kubernetes") {
		t.Errorf("an unknown field: %v", err)
	}
}

// testReporters lets two controllers report of one cluster by server-side apply:
// neither disturbs the other, and neither can take the other's place.
func testReporters(t *testing.T, clusters clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	if _, err := clusters.Create(ctx, identified("reported", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	report := func(manager, reporter, reason string) (*v1beta1.Cluster, error) {
		condition := metaapply.Condition().WithType("Reachable").WithStatus(metav1.ConditionTrue).WithReason(reason).WithMessage("").WithLastTransitionTime(metav1.Now())
		return clusters.ApplyStatus(ctx, applyv1beta1.Cluster("reported").WithStatus(applyv1beta1.ClusterStatus().WithReporters(
			applyv1beta1.Reporter().WithName(reporter).WithLastSeen(metav1.Now()).WithConditions(condition))), metav1.ApplyOptions{FieldManager: manager})
	}
	for _, reporter := range []string{"probe", "agent", "probe"} {
		if _, err := report(reporter, reporter, "By"+reporter); err != nil {
			t.Errorf("%s: %v", reporter, err)
		}
	}
	if _, err := report("agent", "probe", "Stolen"); !apierrors.IsConflict(err) {
		t.Errorf("a report in another's name: %v", err)
	}
	c, err := clusters.Get(ctx, "reported", metav1.GetOptions{})
	if err != nil || len(c.Status.Reporters) != 2 || c.Generation != 1 {
		t.Fatalf("%v: %+v", err, c)
	}
	for _, reporter := range c.Status.Reporters {
		if reporter.Conditions[0].Reason != "By"+reporter.Name || reporter.LastSeen == nil {
			t.Errorf("the report of %s is %+v", reporter.Name, reporter)
		}
	}
	// One that stops applying its entry takes it away, and nothing else.
	c, err = clusters.ApplyStatus(ctx, applyv1beta1.Cluster("reported").WithStatus(applyv1beta1.ClusterStatus()), metav1.ApplyOptions{FieldManager: "probe"})
	if err != nil || len(c.Status.Reporters) != 1 || c.Status.Reporters[0].Name != "agent" {
		t.Errorf("%v: %+v", err, c.Status)
	}
}

// testBetaWatch watches one cluster in both versions while it is written in each.
func testBetaWatch(t *testing.T, config *rest.Config) {
	ctx := t.Context()
	options := metav1.ListOptions{FieldSelector: "metadata.name=watched"}
	news, err := betaOf(t, config).Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer news.Stop()
	olds, err := clustersOf(t, config).Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer olds.Stop()
	made, err := clustersOf(t, config).Create(ctx, cluster("watched", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := betaOf(t, config).Patch(ctx, "watched", types.MergePatchType, []byte(`{"spec":{"endpoints":[{"name":"main","url":"https://moved"}]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		kind         watch.EventType
		address, url string
	}{{watch.Added, made.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress, "https://watched.example:6443"}, {watch.Modified, "https://moved", "https://moved"}} {
		if event := <-news.ResultChan(); event.Type != want.kind || event.Object.(*v1beta1.Cluster).Spec.Endpoints[0].URL != want.url {
			t.Errorf("v1beta1: %+v", event)
		}
		if event := <-olds.ResultChan(); event.Type != want.kind || event.Object.(*v1alpha1.Cluster).Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress != want.address {
			t.Errorf("v1alpha1: %+v", event)
		}
	}
}

// testDiscovery makes sure that clients learn of both versions, the newer first.
func testDiscovery(t *testing.T, config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := client.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		if group.Name != v1beta1.GroupName {
			continue
		}
		got := fmt.Sprint(group.PreferredVersion.Version, " of")
		for _, version := range group.Versions {
			got += " " + version.Version
		}
		if got != "v1beta1 of v1beta1 v1alpha1" {
			t.Errorf("the versions are %s", got)
		}
		return
	}
	t.Errorf("the group is missing in %v", groups)
}

// testBetaSession is what a user of v1beta1 types.
func testBetaSession(t *testing.T, kubectl *framework.Kubectl) {
	const manifest = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"east"},"spec":{"displayName":"East","id":"east.example",` +
		`"endpoints":[{"name":"main","url":"https://east.example","clientCIDRs":["10.0.0.0/8"]}],"manager":{"name":"fleet"}}}`
	kubectl.Run("delete", "crc", "--all")
	for _, step := range []struct {
		stdin, args string
		want        []string
	}{
		{manifest, "apply -f -", []string{"east created"}},
		{manifest, "apply -f -", []string{"east unchanged"}},
		{manifest, "apply --server-side --force-conflicts -f -", []string{"east serverside-applied"}},
		{"", "get crc", []string{"NAME   DISPLAY   VERSION   AVAILABLE   AGE", "east   East      <none>    <none>"}},
		{"", "get crc -o wide", []string{"ID", "ENDPOINT", "MANAGER", "LASTSEEN", "east.example", "https://east.example", "fleet"}},
		{"", "get crc --field-selector=spec.id=east.example -o name", []string{"cluster.clusterregistry.k8s.io/east"}},
		{"", "get crc east -o yaml", []string{"apiVersion: clusterregistry.k8s.io/v1beta1", "displayName: East"}},
		{"", "get clusters.v1alpha1.clusterregistry.k8s.io", []string{"SERVER", "READY", "east.example"}},
		{"", "explain crc.spec", []string{"VERSION:    v1beta1", "displayName\t<string>", "endpoints\t<[]Endpoint>", "sourceRef\t<SourceReference>"}},
		{"", "explain crc.status.reporters", []string{"lastSeen\t<string>", "conditions\t<[]Condition>"}},
		{"", `patch crc east --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Available","status":"True","reason":"Probed","message":"","lastTransitionTime":"2026-11-20T00:00:00Z"}]}}`, []string{"patched"}},
		{"", "wait crc/east --for=condition=Available --timeout=5m", []string{"condition met"}},
		{"", "get crc --no-headers", []string{"True"}},
	} {
		out := kubectl.Stdin(step.stdin).Run(strings.Fields(step.args)...)
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %s: %q is missing in:\n%s", step.args, want, out)
			}
		}
	}
	old := kubectl.Run("get", "clusters.v1alpha1.clusterregistry.k8s.io", "east", "-o", "yaml")
	kubectl.Stdin(old).Run("replace", "-f", "-")
	if out := kubectl.Run("get", "crc", "east", "-o", "jsonpath={.spec.displayName} {.spec.id}"); out != "East east.example" {
		t.Errorf("after a replace by v1alpha1: %s", out)
	}
	for manifest, want := range map[string]string{
		strings.Replace(manifest, "displayName", "displayNmae", 1): `unknown field "spec.displayNmae"`,
		strings.Replace(manifest, "https:", "http:", 1):            "spec.endpoints[0].url: Invalid value",
		strings.Replace(manifest, "east.example", "other", 1):      "may be set once",
	} {
		if _, err := kubectl.Stdin(manifest).Try("apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// testTaints applies several taints of one key, from the client's side and from
// the server's.
func testTaints(t *testing.T, kubectl *framework.Kubectl) {
	const manifest = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"tainted"},"spec":{"taints":[%s]}}`
	const evict, keep, prefer = `{"key":"drain","effect":"NoExecute"}`, `{"key":"drain","effect":"NoSchedule"}`, `{"key":"drain","value":"soon","effect":"PreferNoSchedule"}`
	for _, step := range []struct{ reason, taints, args, want, says string }{
		{"two effects", evict + "," + keep, "apply", "drain=:NoExecute drain=:NoSchedule ", "created"},
		{"the same again", evict + "," + keep, "apply", "drain=:NoExecute drain=:NoSchedule ", "unchanged"},
		{"one more", evict + "," + keep + "," + prefer, "apply", "drain=:NoExecute drain=:NoSchedule drain=soon:PreferNoSchedule ", "configured"},
		{"another value", evict + "," + keep + "," + strings.Replace(prefer, "soon", "now", 1), "apply", "drain=:NoExecute drain=:NoSchedule drain=now:PreferNoSchedule ", "configured"},
		{"one less", keep + "," + prefer, "apply", "drain=:NoSchedule drain=soon:PreferNoSchedule ", "configured"},
		{"nothing from the client's side", "", "delete", "", "deleted"}, // or kubectl would hand that manager's taints over
		{"one manager's", keep, "apply --server-side --field-manager=one", "drain=:NoSchedule ", "serverside-applied"},
		{"two managers'", evict, "apply --server-side --field-manager=two", "drain=:NoSchedule drain=:NoExecute ", "serverside-applied"},
		{"one manager's again", "", "apply --server-side --field-manager=two", "drain=:NoSchedule ", "serverside-applied"},
		{"nothing", "", "delete", "", "deleted"},
	} {
		said := kubectl.Stdin(fmt.Sprintf(manifest, step.taints)).Run(append(strings.Fields(step.args), "-f", "-")...)
		got := kubectl.Run("get", "crc", "tainted", "--ignore-not-found", "-o", `jsonpath={range .spec.taints[*]}{.key}={.value}:{.effect} {end}`)
		if got != step.want || !strings.Contains(said, step.says) {
			t.Errorf("%s: the taints are %q, want %q; kubectl said %s", step.reason, got, step.want, said)
		}
	}
}
