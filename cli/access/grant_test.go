package access

import (
	"errors"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// set returns a ClusterSet.
func set(name string) *v1beta1.ClusterSet {
	return &v1beta1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// in returns a cluster in a set.
func in(set, name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{ClusterSet: set}}
}

// fleet is a ClusterRegistry with a visibility, which its servers have.
func fleet(visibility string) string {
	if visibility == visibleSets {
		return wanting(visibility) + "\nstatus: {visibility: {id: x7k2mq4p}}"
	}
	return wanting(visibility)
}

// wanting is a ClusterRegistry with a visibility in its spec alone.
func wanting(visibility string) string {
	return "apiVersion: operator.clusterregistry.io/v1alpha1\nkind: ClusterRegistry\nmetadata: {name: fleet, namespace: registries}\nspec: {mode: Aggregated, server: {authorization: {visibility: " + visibility + "}}}"
}

// host gives an environment a host cluster with ClusterRegistries and objects of RBAC, and
// returns its client.
func host(t *testing.T, env *commandtest.Env, registries string, objects ...runtime.Object) *kubernetesfake.Clientset {
	t.Helper()
	env.Objects = commandtest.HostCluster(commandtest.Objects(t, registries)...)
	client := kubernetesfake.NewClientset(objects...)
	env.Kubernetes = func() (kubernetes.Interface, error) { return client, nil }
	return client
}

// independent gives an environment the context of an independent registry.
func independent(t *testing.T, env *commandtest.Env, objects ...runtime.Object) *kubernetesfake.Clientset {
	t.Helper()
	client := host(t, env, "", objects...)
	fail(&env.Objects.Fake, "list", "clusterregistries", notServed)
	return client
}

var notServed = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}}

func forbidden(resource string) error {
	return apierrors.NewForbidden(rbacv1.Resource(resource), "", errors.New("no"))
}

// fail has requests fail.
func fail(client *clienttesting.Fake, verb, resource string, err error) {
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// shipped returns the ClusterRoles that are the gate.
func shipped(t *testing.T) (out []runtime.Object) {
	t.Helper()
	content, err := os.ReadFile("../../manifests/operator/users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(content))
}

// parse returns the ClusterRoles and ClusterRoleBindings of a file.
func parse(t *testing.T, file string) (out []runtime.Object) {
	t.Helper()
	for document := range strings.SplitSeq(file, "\n---\n") {
		var object runtime.Object = &rbacv1.ClusterRole{}
		if strings.Contains(document, "kind: ClusterRoleBinding\n") {
			object = &rbacv1.ClusterRoleBinding{}
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatalf("%v: %s", err, document)
		}
		out = append(out, object)
	}
	return out
}

const viewerOfPayments = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    app.kubernetes.io/managed-by: kubectl-registry
    clusterregistry.k8s.io/clusterset: payments
  name: clusterregistry:set:payments:viewer
rules:
- apiGroups:
  - clusterregistry.k8s.io
  resourceNames:
  - payments
  resources:
  - clustersets/clusters
  verbs:
  - get
- apiGroups:
  - clusterregistry.k8s.io
  resourceNames:
  - payments
  resources:
  - clustersets
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    app.kubernetes.io/managed-by: kubectl-registry
    clusterregistry.k8s.io/clusterset: payments
  name: clusterregistry:set:payments:viewer:group:team-payments
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: clusterregistry:set:payments:viewer
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: team-payments
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    app.kubernetes.io/managed-by: kubectl-registry
  name: clusterregistry:gate:viewer:group:team-payments
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: clusterregistry:viewer
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: team-payments
`

// TestGrant expects what is printed for a viewer word by word, twice the same, without a
// write and without a warning.
func TestGrant(t *testing.T) {
	for range 2 {
		env := commandtest.New(t, set("payments"))
		client := host(t, env, fleet("ClusterSets"), shipped(t)...)
		if text, code := env.Run(t, NewGrant(env.Env), "payments", "--viewer", "--group", "team-payments", "--group=team-payments"); code != 0 {
			t.Fatalf("%d: %s", code, text)
		}
		if got := env.Stdout.String(); got != viewerOfPayments || env.Stderr.Len() > 0 {
			t.Errorf("it prints\n%s%s\nwant\n%s", got, env.Stderr, viewerOfPayments)
		}
		for _, action := range append(client.Actions(), append(env.Clusters.Actions(), env.Objects.Actions()...)...) {
			if verb := action.GetVerb(); verb != "get" && verb != "list" {
				t.Errorf("it sends %s %s", verb, action.GetResource().Resource)
			}
		}
	}
}

// TestGrantLevels expects what each level gives: an editor's rights are those of the set,
// and only the gate has endpoints.
func TestGrantLevels(t *testing.T) {
	for _, test := range []struct{ level, role, gate, verbs, join string }{
		{"viewer", "clusterregistry:set:a:viewer", "clusterregistry:viewer", "get", ""},
		{"editor", "clusterregistry:set:a:editor", "clusterregistry:editor", "get,create,update,patch,delete,deletecollection", "create"},
		{"endpoint-editor", "clusterregistry:set:a:editor", "clusterregistry:endpoint-editor", "get,create,update,patch,delete,deletecollection", "create"},
	} {
		env := commandtest.New(t, set("a"))
		host(t, env, fleet("ClusterSets"), shipped(t)...)
		if text, code := env.Run(t, NewGrant(env.Env), "a", "--"+test.level, "--user=ann", "--service-account=ci:deployer"); code != 0 {
			t.Fatalf("%s: %d: %s", test.level, code, text)
		}
		objects := parse(t, env.Stdout.String())
		verbs := map[string]string{}
		for _, rule := range objects[0].(*rbacv1.ClusterRole).Rules {
			if strings.Join(rule.ResourceNames, ",") != "a" || strings.Join(rule.APIGroups, ",") != "clusterregistry.k8s.io" {
				t.Errorf("%s: a rule is %+v", test.level, rule)
			}
			verbs[strings.Join(rule.Resources, ",")] = strings.Join(rule.Verbs, ",")
		}
		if verbs["clustersets/clusters"] != test.verbs || verbs["clustersets/join"] != test.join || verbs["clustersets"] != "get" {
			t.Errorf("%s: the rules are %+v", test.level, verbs)
		}
		var given []string
		for _, object := range objects[1:] {
			binding := object.(*rbacv1.ClusterRoleBinding)
			given = append(given, binding.RoleRef.Name+" "+described(binding.Subjects[0]))
		}
		want := []string{test.role + " user ann", test.role + " service account ci:deployer", test.gate + " user ann", test.gate + " service account ci:deployer"}
		if strings.Join(given, "\n") != strings.Join(want, "\n") || objects[0].(*rbacv1.ClusterRole).Name != test.role {
			t.Errorf("%s: the bindings are %q, want %q", test.level, given, want)
		}
	}
}

// TestBindingNames expects names that are valid, always the same, and each its own.
func TestBindingNames(t *testing.T) {
	long := strings.Repeat("g", 300)
	seen := map[string]rbacv1.Subject{}
	for _, subject := range []rbacv1.Subject{
		{Kind: "Group", Name: "a"}, {Kind: "User", Name: "a"}, {Kind: "Group", Name: "ci:a"}, {Kind: "ServiceAccount", Namespace: "ci", Name: "a"},
		{Kind: "User", Name: "https://issuer.example/#ann"}, {Kind: "User", Name: "https://issuer.example/%ann"}, {Kind: "User", Name: "https---issuer.example--ann"},
		{Kind: "Group", Name: "cn=team,dc=example"}, {Kind: "Group", Name: "cn=team;dc=example"}, {Kind: "Group", Name: "東"}, {Kind: "Group", Name: "西"},
		{Kind: "Group", Name: long + "1"}, {Kind: "Group", Name: long + "2"}, {Kind: "User", Name: "ann@example.com"},
	} {
		name := bindingName("clusterregistry:set:a:viewer", subject)
		if faults := content.IsPathSegmentName(name); len(faults) > 0 || len(name) > 253 || !strings.HasPrefix(name, "clusterregistry:set:a:viewer:") {
			t.Errorf("%+v has %q: %q", subject, name, faults)
		}
		if other, is := seen[name]; is {
			t.Errorf("%+v and %+v both have %q", subject, other, name)
		}
		if seen[name] = subject; name != bindingName("clusterregistry:set:a:viewer", subject) {
			t.Errorf("%+v has another name the next time", subject)
		}
	}
}

// TestGrantErrors has each mistake of the command line, and expects what to do.
func TestGrantErrors(t *testing.T) {
	for _, test := range []struct{ line, text string }{
		{"|--viewer|--group=a", `the name of the set is empty: name one, as "kubectl get crset" lists them`},
		{"team-*|--viewer|--group=a", `"team-*" is a pattern, and roles know sets by their names only: name one set, as "kubectl get crset" lists them`},
		{"Team|--viewer|--group=a", `"Team" is not a valid name of a set: `},
		{"a|--group=a", "0 of --viewer, --editor and --endpoint-editor are set: set the one that is to be given"},
		{"a|--viewer|--editor|--group=a", "2 of --viewer, --editor and --endpoint-editor are set: set the one that is to be given"},
		{"a|--viewer", "it is not said who gets it: use --group, --user or --service-account"},
		{"a|--viewer|--group=", "--group= names no one: give the name by which the API server knows the group"},
		{"a|--viewer|--user=", "--user= names no one: give the name by which the API server knows the user"},
		{"a|--viewer|--service-account=deployer", "--service-account=deployer: name it as NAMESPACE:NAME, such as ci:deployer"},
		{"a|--viewer|--service-account=ci:a:b", "--service-account=ci:a:b: name it as NAMESPACE:NAME, such as ci:deployer"},
		{"a|b|--viewer|--group=a", `accepts 1 arg(s), received 2; see "kubectl-registry grant --help"`},
	} {
		env := commandtest.New(t)
		text, code := env.Run(t, NewGrant(env.Env), strings.Split(test.line, "|")...)
		if code != command.ExitUsage || !strings.HasPrefix(text, test.text) || env.Stdout.Len() > 0 {
			t.Errorf("%s: %d, %s, and it prints %s", test.line, code, text, env.Stdout)
		}
	}
}

// TestGrantWarnings has each way in which what is printed gives something else than is
// expected, or in which that is not known; it is printed all the same.
func TestGrantWarnings(t *testing.T) {
	const unchecked = "note: the visibility of the registry was not checked: "
	for _, test := range []struct {
		reason  string
		prepare func(*commandtest.Env)
		want    string
	}{
		{"no such set", func(env *commandtest.Env) { host(t, env, fleet("ClusterSets"), shipped(t)...) },
			"warning: the registry of context hub has no ClusterSet a: what is printed gives its clusters as soon as someone creates it\n"},
		{"no registry", func(env *commandtest.Env) {
			host(t, env, fleet("ClusterSets"), shipped(t)...)
			fail(&env.Clusters.Fake, "get", "clustersets", notServed)
		}, "note: whether the ClusterSet a exists was not checked: get the set: the registry (context hub) does not serve clusterregistry.k8s.io/v1beta1: "},
		{"no right to the set", func(env *commandtest.Env) {
			host(t, env, fleet("ClusterSets"), shipped(t)...)
			fail(&env.Clusters.Fake, "get", "clustersets", forbidden("clustersets"))
		}, "note: whether the ClusterSet a exists was not checked: get the set: "},
		{"visibility All", func(env *commandtest.Env) { host(t, env, fleet("All"), shipped(t)...) },
			"warning: the registry registries/fleet has the visibility All: whoever gets this sees, and with the gate of an editor changes, the clusters of all sets; set spec.server.authorization.visibility to ClusterSets first\n"},
		{"a visibility that the servers don't have", func(env *commandtest.Env) { host(t, env, wanting("ClusterSets"), shipped(t)...) },
			"warning: the ClusterRegistry registries/fleet asks for the visibility ClusterSets, and its servers have All: its condition Ready says why. Whoever gets this sees, and with the gate of an editor changes, the clusters of all sets until then\n"},
		{"clusters that are still hidden", func(env *commandtest.Env) {
			host(t, env, wanting("All")+"\nstatus: {visibility: {id: x7k2mq4p}}", shipped(t)...)
		}, ""},
		{"no visibility", func(env *commandtest.Env) { host(t, env, fleet(""), shipped(t)...) },
			"warning: the registry registries/fleet has the visibility All: "},
		{"an independent registry", func(env *commandtest.Env) { independent(t, env, shipped(t)...) },
			unchecked + "this context has no ClusterRegistries, so it is that of an independent registry: "},
		{"no aggregated registry", func(env *commandtest.Env) {
			host(t, env, strings.Replace(fleet("All"), "Aggregated", "Independent", 1), shipped(t)...)
		}, unchecked + "you see no aggregated ClusterRegistry here: "},
		{"two that differ", func(env *commandtest.Env) {
			host(t, env, fleet("All")+"\n---\n"+strings.Replace(fleet("ClusterSets"), "name: fleet", "name: other", 1), shipped(t)...)
		}, unchecked + "the ClusterRegistries registries/fleet and registries/other differ in it, and only one can be aggregated: "},
		{"no right to the registries", func(env *commandtest.Env) {
			host(t, env, "", shipped(t)...)
			fail(&env.Objects.Fake, "list", "clusterregistries", forbidden("clusterregistries"))
		}, unchecked + "you may not list ClusterRegistries here: "},
		{"no gate", func(env *commandtest.Env) { host(t, env, fleet("ClusterSets")) },
			"warning: there is no ClusterRole clusterregistry:editor, so the binding to it gives nothing: "},
		{"no right to the gate", func(env *commandtest.Env) {
			client := host(t, env, fleet("ClusterSets"))
			fail(&client.Fake, "get", "clusterroles", forbidden("clusterroles"))
		}, ""},
		{"no kubeconfig", func(env *commandtest.Env) {
			env.Kubernetes = func() (kubernetes.Interface, error) { return nil, errors.New("no kubeconfig\x1b[2J") }
		}, unchecked},
	} {
		env := commandtest.New(t, set("a"))
		if test.reason == "no such set" {
			env = commandtest.New(t)
		}
		test.prepare(env)
		text, code := env.Run(t, NewGrant(env.Env), "a", "--editor", "--group=b")
		if code != 0 || len(parse(t, env.Stdout.String())) != 3 {
			t.Errorf("%s: %d, %s", test.reason, code, text)
		}
		if got := env.Stderr.String(); !strings.HasPrefix(got, test.want) || strings.Count(got, "\n") > 1 || test.want == "" && got != "" || strings.Contains(got, "\x1b") {
			t.Errorf("%s: it says %q, want %q", test.reason, got, test.want)
		}
	}
}
