package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	applyv1beta1 "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// people are who uses a registry that guards fields: each is a user of that name, and has
// the roles of that name.
var people = map[string][]string{
	"ann":   {"clusterregistry:editor"},
	"bob":   {"clusterregistry:editor", "east-endpoints"},
	"eve":   {"clusterregistry:endpoint-editor"},
	"probe": {"clusterregistry:status-writer"},
	"agent": {"clusterregistry:status-writer"},
	"host":  {"clusterregistry:controller:register-host"},
}

// TestGuardedFields guards endpoints and identity, in both modes: each as an authorizer
// that a registry really has decides.
func TestGuardedFields(t *testing.T) {
	t.Parallel()
	t.Run("independent", func(t *testing.T) {
		etcd := framework.StartEtcd(t, 1)
		registry, clients, admin := independentOn(t, etcd, "--guarded-fields=Enforce")
		as := func(user string) *rest.Config { return registry.Config(clients.Issue(user, nil)) }
		testGuardedFields(t, admin, as)
		warning := framework.StartRegistry(t, append(etcd.Flags(), "--mode=independent", "--client-ca-file="+clients.File, "--guarded-fields=Warn")...)
		warning.WaitReady(t)
		testGuardedFieldsWarn(t, warning.Config(clients.Issue("ann", nil)), warning.Config(clients.Issue("root", admins)))
	})
	t.Run("aggregated", func(t *testing.T) {
		host, _ := framework.StartAggregated(t, newest, "--guarded-fields=Enforce")
		framework.Create(t, framework.HostClient(t, host.Config), shippedRoles(t)...)
		testGuardedFields(t, host.Config, func(user string) *rest.Config { return userConfig(t, host, user) })
	})
}

// shippedRoles returns the ClusterRoles that the operator ships.
func shippedRoles(t *testing.T) []client.Object {
	t.Helper()
	var out []client.Object
	for _, file := range []string{"controller.yaml", "users.yaml"} {
		content, err := os.ReadFile(filepath.Join(framework.Root(t), "manifests", "operator", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			role := &rbacv1.ClusterRole{}
			if err := yaml.UnmarshalStrict(document, role); err != nil {
				t.Fatal(err)
			}
			out = append(out, role)
		}
	}
	return out
}

// testGuardedFields gives people their roles, and sees what each may write.
func testGuardedFields(t *testing.T, admin *rest.Config, as func(string) *rest.Config) {
	rbac := clientset(t, admin).RbacV1()
	east := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "east-endpoints"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"update"}, APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clusters/endpoints"}, ResourceNames: []string{"east"}}}}
	if _, err := rbac.ClusterRoles().Create(t.Context(), east, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	configs := map[string]*rest.Config{}
	for user, roles := range people {
		for i, role := range roles {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", user, i)},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
			if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		configs[user] = as(user)
		framework.Eventually(t, user+" to be let in", func(ctx context.Context) error { return listClusters(ctx, t, configs[user]) })
	}
	// The server keeps a refusal for a while, so that no one is asked about before the roles are known.
	framework.Eventually(t, "the permission of eve to be known", func(ctx context.Context) error {
		_, err := betaOf(t, configs["eve"]).Create(ctx, guardedCluster("probed"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	for _, name := range []string{"east", "west"} {
		if _, err := betaOf(t, configs["eve"]).Create(t.Context(), guardedCluster(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "the permission of bob to be known", func(ctx context.Context) error {
		_, err := betaOf(t, configs["bob"]).Patch(ctx, "east", types.MergePatchType, []byte(`{"spec":{"endpoints":[]}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	testGuardedUsers(t, configs)
	testGuardedStatus(t, configs)
	if _, err := betaOf(t, configs["host"]).Create(t.Context(), guardedCluster("management"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the function registerHost enters the host cluster: %v", err)
	}
}

func guardedCluster(name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{ID: "id-" + name, Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name}}}}
}

// testGuardedUsers has ann, who may write clusters, and bob, who may change the endpoints
// of east besides, write what they may and what they may not.
func testGuardedUsers(t *testing.T, configs map[string]*rest.Config) {
	ctx := t.Context()
	const (
		label  = `{"metadata":{"labels":{"by":"%s"}}}`
		beta   = `{"spec":{"endpoints":[{"name":"main","url":"https://evil.%s"}]}}`
		alpha  = `{"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"https://other.%s"}]}}}`
		source = `{"spec":{"sourceRef":{"apiVersion":"v1","kind":"Secret","name":"%s"}}}`
	)
	patch := func(user, version, name, body string) error {
		body = fmt.Sprintf(body, user)
		if version == "v1alpha1" {
			_, err := clustersOf(t, configs[user]).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}
		_, err := betaOf(t, configs[user]).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	for _, test := range []struct{ user, version, name, body, missing string }{
		{"ann", "v1beta1", "east", label, ""},
		{"ann", "v1alpha1", "east", label, ""},
		{"ann", "v1beta1", "east", beta, "endpoints"},
		{"ann", "v1alpha1", "east", alpha, "endpoints"},
		{"ann", "v1beta1", "east", source, "identity"},
		{"bob", "v1beta1", "west", label, ""},
		{"bob", "v1beta1", "west", beta, "endpoints"},
		{"bob", "v1alpha1", "west", alpha, "endpoints"},
		{"bob", "v1beta1", "east", beta, ""},
		{"bob", "v1alpha1", "east", alpha, ""},
		{"bob", "v1beta1", "east", source, "identity"},
		{"eve", "v1beta1", "west", beta, ""},
		{"eve", "v1beta1", "east", source, ""},
	} {
		err := patch(test.user, test.version, test.name, test.body)
		expectMissing(t, fmt.Sprintf("%s patches %s through %s with %s", test.user, test.name, test.version, test.body), err, test.user, test.missing, test.name)
	}

	ann := betaOf(t, configs["ann"])
	is, err := ann.Get(ctx, "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ann.Update(ctx, is, metav1.UpdateOptions{})
	expectMissing(t, "replace by the same", err, "ann", "", "east")
	_, err = ann.Apply(ctx, applyv1beta1.Cluster("east").WithSpec(applyv1beta1.ClusterSpec().WithEndpoints(applyv1beta1.Endpoint().WithName("more").WithURL("https://more"))), metav1.ApplyOptions{FieldManager: "ann", Force: true})
	expectMissing(t, "apply another endpoint", err, "ann", "endpoints", "east")
	_, err = ann.Create(ctx, guardedCluster("new"), metav1.CreateOptions{})
	expectMissing(t, "create", err, "ann", "endpoints", "new")
	expectMissing(t, "create", err, "ann", "identity", "new")
	_, err = ann.Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, metav1.CreateOptions{})
	expectMissing(t, "create with nothing that is guarded", err, "ann", "", "bare")
	expectMissing(t, "the first id", patch("ann", "v1beta1", "bare", `{"spec":{"id":"%s"}}`), "ann", "identity", "bare")
}

// expectMissing expects a refusal that names the permission, or none when it is empty.
func expectMissing(t *testing.T, what string, err error, user, permission, name string) {
	t.Helper()
	if permission == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if want := fmt.Sprintf(`User %q cannot update resource "clusters/%s" in API group "clusterregistry.k8s.io" for the name %q`, user, permission, name); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// testGuardedStatus has two writers of statuses report of a cluster, each in its own entry,
// which needs no permission besides; the rest of the cluster is not theirs.
func testGuardedStatus(t *testing.T, configs map[string]*rest.Config) {
	ctx := t.Context()
	for _, reporter := range []string{"probe", "agent", "probe"} {
		condition := metaapply.Condition().WithType("Reachable").WithStatus(metav1.ConditionTrue).WithReason("By" + reporter).WithMessage("").WithLastTransitionTime(metav1.Now())
		status := applyv1beta1.ClusterStatus().WithReporters(applyv1beta1.Reporter().WithName(reporter).WithLastSeen(metav1.Now()).WithConditions(condition))
		if _, err := betaOf(t, configs[reporter]).ApplyStatus(ctx, applyv1beta1.Cluster("west").WithStatus(status), metav1.ApplyOptions{FieldManager: reporter}); err != nil {
			t.Errorf("%s reports: %v", reporter, err)
		}
	}
	_, err := betaOf(t, configs["probe"]).Patch(ctx, "west", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a writer of statuses labels a cluster: %v", err)
	}
	west, err := betaOf(t, configs["agent"]).Get(ctx, "west", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var reporters []string
	for _, reporter := range west.Status.Reporters {
		reporters = append(reporters, reporter.Name+" "+reporter.Conditions[0].Reason)
	}
	slices.Sort(reporters)
	if want := []string{"agent Byagent", "probe Byprobe"}; !slices.Equal(reporters, want) {
		t.Errorf("reported by %q, want %q", reporters, want)
	}
}

// warnings keeps what a server warns of.
type warnings struct {
	mu   sync.Mutex
	said []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// testGuardedFieldsWarn lets ann do what she may not, and counts it.
func testGuardedFieldsWarn(t *testing.T, config, admin *rest.Config) {
	heard := &warnings{}
	config.WarningHandler = heard
	if _, err := betaOf(t, config).Patch(t.Context(), "west", types.MergePatchType, []byte(`{"spec":{"endpoints":[{"name":"main","url":"https://new"}]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(heard.said) != 1 || !strings.Contains(heard.said[0], `User "ann" cannot update resource "clusters/endpoints"`) || !strings.Contains(heard.said[0], "guardedFields: Enforce will refuse this") {
		t.Errorf("warned %q", heard.said)
	}
	content, err := clientset(t, admin).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := `clusterregistry_guarded_writes_total{outcome="warned",permission="endpoints"} 1`; !strings.Contains(string(content), want) {
		t.Errorf("the metrics don't have %s", want)
	}
}
