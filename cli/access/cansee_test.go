package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// granted returns what grant prints.
func granted(t *testing.T, args ...string) []runtime.Object {
	t.Helper()
	env := commandtest.New(t)
	host(t, env, "")
	if text, code := env.Run(t, NewGrant(env.Env), args...); code != 0 {
		t.Fatalf("%q: %d, %s", args, code, text)
	}
	return parse(t, env.Stdout.String())
}

// bound returns a role with a rule on the registry's API, and its binding to the user ann.
func bound(name, resource, verbs string, names ...string) []runtime.Object {
	return []runtime.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"clusterregistry.k8s.io"}, Resources: []string{resource}, ResourceNames: names, Verbs: strings.Split(verbs, ",")}}},
		binding(name, name, nil, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}),
	}
}

// distinct leaves out objects that are there already, as the roles of two grants of a set are.
func distinct(objects ...[]runtime.Object) (out []runtime.Object) {
	seen := map[string]bool{}
	for _, object := range slices.Concat(objects...) {
		name := fmt.Sprintf("%T %s", object, object.(metav1.Object).GetName())
		if !seen[name] {
			out = append(out, object)
		}
		seen[name] = true
	}
	return out
}

// decide has reviews answered: each by RBAC as it is in the client, but for what another
// authorizer decides. It returns who was asked about.
func decide(t *testing.T, client *kubernetesfake.Clientset, other map[string]bool) *[]authorizationv1.SubjectAccessReviewSpec {
	t.Helper()
	asked := &[]authorizationv1.SubjectAccessReviewSpec{}
	allow := func(w who, attributes *authorizationv1.ResourceAttributes) bool {
		right := Right{attributes.Verb, strings.TrimSuffix(attributes.Resource+"/"+attributes.Subresource, "/"), attributes.Name}
		if allowed, decided := other[right.String()]; decided {
			return allowed
		}
		// From the tracker: within a request, the client itself is locked.
		list := func(resource, kind string) runtime.Object {
			found, err := client.Tracker().List(rbacv1.SchemeGroupVersion.WithResource(resource), rbacv1.SchemeGroupVersion.WithKind(kind), "")
			if err != nil {
				panic(err)
			}
			return found
		}
		bindings := list("clusterrolebindings", "ClusterRoleBinding").(*rbacv1.ClusterRoleBindingList)
		roles := list("clusterroles", "ClusterRole").(*rbacv1.ClusterRoleList)
		return policyOf(bindings.Items, roles.Items, w).allows(right)
	}
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		*asked = append(*asked, review.Spec)
		review.Status.Allowed = allow(who{user: review.Spec.User, groups: review.Spec.Groups}, review.Spec.ResourceAttributes)
		return true, review, nil
	})
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		review.Status.Allowed = allow(whoIs("me", []string{"team-a"}), review.Spec.ResourceAttributes)
		return true, review, nil
	})
	client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "me", Groups: []string{"team-a", "system:authenticated"}}}}, nil
	})
	return asked
}

// registry returns an environment with the sets a and b, a cluster in each, and one in none.
func registry(t *testing.T) *commandtest.Env {
	return commandtest.New(t, set("b"), set("a"), in("a", "east"), in("b", "west"), in("", "lone"))
}

// canSee runs can-see as json.
func canSee(t *testing.T, env *commandtest.Env, code int, args ...string) *Report {
	t.Helper()
	text, got := env.Run(t, NewCanSee(env.Env), append(args, "-o", "json")...)
	if got != code {
		t.Fatalf("%q: exits with %d: %s", args, got, text)
	}
	out := &Report{}
	if err := json.Unmarshal(env.Stdout.Bytes(), out); err != nil {
		t.Fatalf("%q prints %s: %v", args, env.Stdout, err)
	}
	return out
}

// brief is a report in one line: of each scope what is read, seen, changed and moved.
func (r *Report) brief() string {
	var out []string
	for _, scope := range append([]Scope{r.All}, r.Sets...) {
		name := scope.Name
		if name == "" {
			name = "*"
		}
		text := name + ":" + answer(scope.Read)[:1] + " " + verbs(scope.See, reads) + " " + verbs(scope.Change, writes)
		if scope.Join {
			text += " moves"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestCanSee has people with each kind of rights, and expects what they see, change and move;
// that reviews and RBAC agree; and which binding is the reason.
func TestCanSee(t *testing.T) {
	for _, test := range []struct {
		reason     string
		visibility string
		objects    []runtime.Object
		args       string
		want       string
		verdict    string
		// by are the bindings.
		by string
	}{
		{"no one", "ClusterSets", nil, "--subject ann",
			"*:n no no; a:n no no; b:n no no", "ann sees no clusters, changes none", ""},
		{"a viewer of a set, by a group", "ClusterSets", granted(t, "a", "--viewer", "--group=team-a"), "--subject ann --subject-group team-a",
			"*:y no no; a:y yes no; b:y no no", "ann sees the clusters of 1 of 2 sets (1), changes none",
			"clusterregistry:gate:viewer:group:team-a clusterregistry:set:a:viewer:group:team-a"},
		{"someone else", "ClusterSets", granted(t, "a", "--viewer", "--group=team-a"), "--subject ann --subject-group team-b",
			"*:n no no; a:n no no; b:n no no", "ann sees no clusters, changes none", ""},
		{"an editor of a set who views another", "ClusterSets", distinct(granted(t, "a", "--editor", "--user=ann"), granted(t, "b", "--viewer", "--user=ann")), "--subject ann",
			"*:y no no; a:y yes yes moves; b:y yes no", "ann sees the clusters of 2 of 2 sets (2), changes those of 1, and may move those of 1", ""},
		{"a service account that edits endpoints", "ClusterSets", granted(t, "b", "--endpoint-editor", "--service-account=ci:deployer"), "--subject system:serviceaccount:ci:deployer",
			"*:y no no; a:y no no; b:y yes yes moves", "system:serviceaccount:ci:deployer sees the clusters of 1 of 2 sets (1), changes those of 1, and may move those of 1",
			"clusterregistry:gate:endpoint-editor:serviceaccount:ci:deployer clusterregistry:set:b:editor:serviceaccount:ci:deployer"},
		{"an administrator", "ClusterSets", bound("root", "*", "*"), "--subject ann",
			"*:y yes yes; a:y yes yes moves; b:y yes yes moves", "ann sees all clusters (3), changes all, and may move those of 2", "root:user:ann"},
		{"who sees all and edits one set", "ClusterSets", distinct(granted(t, "a", "--editor", "--user=ann"), bound("all", "clustersets/clusters", "get")), "--subject ann",
			"*:y yes no; a:y yes yes moves; b:y yes no", "ann sees all clusters (3), changes those of 1, and may move those of 1", ""},
		{"an editor who may not move", "ClusterSets", distinct(bound("e", "clustersets/clusters", "*", "a"), bound("g", "clusters", "*")), "--subject ann",
			"*:n no no; a:n yes update,patch,delete,deletecollection; b:n no no", "ann sees the clusters of 1 of 2 sets (1), changes those of 1", ""},
		{"who changes what they don't see", "ClusterSets", distinct(bound("w", "clustersets/clusters", "create,update,patch,delete", "a"), bound("j", "clustersets/join", "create", "a"), bound("g", "clusters", "*")), "--subject ann",
			"*:n no no; a:n no create moves; b:n no no", "ann sees no clusters, changes those of 1, and may move those of 1", "g:user:ann j:user:ann w:user:ann"},
		{"the gate alone", "ClusterSets", bound("g", "clusters", "get,list,watch"), "--subject ann",
			"*:n no no; a:n no no; b:n no no", "ann sees no clusters, changes none", "g:user:ann"},
		{"the gate alone, where all see all", "All", bound("g", "clusters", "get,list,watch,patch"), "--subject ann",
			"*:n yes patch; a:n yes patch; b:n yes patch", "ann sees all clusters (3), changes all", "g:user:ann"},
		{"one who moves, where all see all", "All", distinct(bound("g", "clusters", "*"), bound("j", "clustersets/join", "create", "b")), "--subject ann",
			"*:n yes yes; a:n yes update,patch,delete,deletecollection; b:n yes yes moves", "ann sees all clusters (3), changes all, and may move those of 1", "g:user:ann j:user:ann"},
		{"the gate alone, as if sets were told apart", "All", bound("g", "clusters", "get,list,watch"), "--subject ann --visibility ClusterSets",
			"*:n no no; a:n no no; b:n no no", "ann sees no clusters, changes none", "g:user:ann"},
		{"one set", "ClusterSets", granted(t, "a", "--viewer", "--user=ann"), "a --subject ann",
			"*:y no no; a:y yes no", "ann sees the clusters of 1 of 1 sets (1), changes none", ""},
		{"yourself", "ClusterSets", granted(t, "a", "--viewer", "--group=team-a"), "",
			"*:y no no; a:y yes no; b:y no no", "me sees the clusters of 1 of 2 sets (1), changes none", ""},
		{"everyone", "ClusterSets", granted(t, "a", "--viewer", "--group=system:authenticated"), "--subject ann",
			"*:y no no; a:y yes no; b:y no no", "ann sees the clusters of 1 of 2 sets (1), changes none", ""},
		{"everyone, and someone without a name", "ClusterSets", granted(t, "a", "--viewer", "--group=system:authenticated"), "--subject system:anonymous",
			"*:n no no; a:n no no; b:n no no", "system:anonymous sees no clusters, changes none", ""},
	} {
		env := registry(t)
		client := host(t, env, fleet(test.visibility), distinct(shipped(t), test.objects)...)
		decide(t, client, nil)
		got := canSee(t, env, 0, strings.Fields(test.args)...)
		if got.brief() != test.want || got.Verdict != test.verdict || !got.Reviewed || len(got.Problems) > 0 {
			t.Errorf("%s: %s\n%s\n%q, want\n%s\n%s", test.reason, got.Verdict, got.brief(), got.Problems, test.verdict, test.want)
		}
		var by []string
		for _, grant := range got.Grants {
			by = append(by, grant.Binding)
		}
		if test.by != "" && strings.Join(by, " ") != test.by {
			t.Errorf("%s: by %q, want %q", test.reason, by, test.by)
		}
		for _, note := range got.Notes {
			if strings.HasPrefix(note, "something other than RBAC") {
				t.Errorf("%s: %s", test.reason, note)
			}
		}
	}
}

// TestCanSeeServers shows what the servers do, where the spec asks for something else.
func TestCanSeeServers(t *testing.T) {
	const hides = "\nstatus: {visibility: {id: x7k2mq4p}}"
	for _, test := range []struct{ wanted, status, want, note string }{
		{"ClusterSets", "", "*:n yes no; a:n yes no; b:n yes no", "the ClusterRegistry registries/fleet asks for the visibility ClusterSets, and its servers have All: its condition Ready says why"},
		{"All", hides, "*:n no no; a:n no no; b:n no no", "the ClusterRegistry registries/fleet asks for the visibility All, and its servers have ClusterSets: its condition Ready says why"},
	} {
		env := registry(t)
		decide(t, host(t, env, wanting(test.wanted)+test.status, distinct(shipped(t), bound("g", "clusters", "get,list,watch"))...), nil)
		if got := canSee(t, env, 0, "--subject", "ann"); got.brief() != test.want || !slices.Contains(got.Notes, test.note) {
			t.Errorf("%s: %s, %q", test.wanted, got.brief(), got.Notes)
		}
	}
}

// TestCanSeeAsks expects that an API server is asked about the one who is named, with the
// groups that they have, and as a registry itself asks.
func TestCanSeeAsks(t *testing.T) {
	env := registry(t)
	asked := decide(t, host(t, env, fleet("ClusterSets")), nil)
	canSee(t, env, 0, "--subject", "system:serviceaccount:ci:deployer", "--subject-group", "more,than one")
	seen := map[authorizationv1.ResourceAttributes]int{}
	for _, spec := range *asked {
		seen[*spec.ResourceAttributes]++
		if want := []string{"more,than one", "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:ci"}; !slices.Equal(spec.Groups, want) || spec.User != "system:serviceaccount:ci:deployer" {
			t.Fatalf("asked about %s of %q", spec.User, spec.Groups)
		}
	}
	for _, want := range []authorizationv1.ResourceAttributes{
		{Verb: "watch", Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clusters"},
		{Verb: "patch", Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clustersets", Subresource: "clusters"},
		{Verb: "get", Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clustersets", Subresource: "clusters", Name: "b"},
		{Verb: "create", Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clustersets", Subresource: "join", Name: "a"},
		{Verb: "get", Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clustersets", Name: "a"},
	} {
		if seen[want] != 1 {
			t.Errorf("%+v was asked %d times", want, seen[want])
		}
	}
	// 8 verbs of the gate, the first of them twice, 6 of the decision and one for sets; of
	// each set the decision, the set and to move.
	if len(*asked) != 9+6+1+2*8 {
		t.Errorf("%d reviews were asked", len(*asked))
	}
}

// TestCanSeeWithoutGate has a decision that no request reaches, and expects to hear of it.
func TestCanSeeWithoutGate(t *testing.T) {
	set := bound("s", "clustersets/clusters", "get,patch", "a")
	for _, test := range []struct {
		reason  string
		objects []runtime.Object
		prepare func(*commandtest.Env, []runtime.Object) *kubernetesfake.Clientset
		brief   string
		want    []string
	}{
		{"neither", set, nil, "*:n no no; a:n no no; b:n no no", []string{
			"the decision is there (get on clustersets/clusters), and the gate is not (get, list, watch on clusters): the host cluster refuses the request before the registry sees it",
			"the decision is there (patch on clustersets/clusters), and the gate is not (patch on clusters): the host cluster refuses the request before the registry sees it"}},
		{"reads only", distinct(set, bound("clusterregistry:viewer", "clusters", "get,list,watch")), nil, "*:n no no; a:n yes no; b:n no no", []string{
			"the decision is there (patch on clustersets/clusters), and the gate is not (patch on clusters): the host cluster refuses the request before the registry sees it"}},
		{"no list", distinct(bound("s", "clustersets/clusters", "get", "a"), bound("g", "clusters", "get,watch")), nil, "*:n no no; a:n get,watch no; b:n no no", []string{
			"the decision is there (get on clustersets/clusters), and the gate is not (list on clusters): the host cluster refuses the request before the registry sees it"}},
		{"an independent registry", bound("s", "clustersets/clusters", "get"), func(env *commandtest.Env, objects []runtime.Object) *kubernetesfake.Clientset {
			return independent(t, env, objects...)
		}, "*:n no no; a:n no no; b:n no no", []string{
			"the decision is there (get on clustersets/clusters), and the gate is not (get, list, watch on clusters): the API server refuses the request before the registry decides"}},
	} {
		env := registry(t)
		if test.prepare == nil {
			test.prepare = func(env *commandtest.Env, objects []runtime.Object) *kubernetesfake.Clientset {
				return host(t, env, fleet("ClusterSets"), objects...)
			}
		}
		decide(t, test.prepare(env, test.objects), nil)
		got := canSee(t, env, command.ExitAttention, "--subject", "ann")
		var problems []string
		for _, problem := range got.Problems {
			problems = append(problems, problem.Message)
		}
		if !slices.Equal(problems, test.want) || got.brief() != test.brief {
			t.Errorf("%s: %s, %q, want %s, %q", test.reason, got.brief(), problems, test.brief, test.want)
		}
	}
}

// TestCanSeeOthersDecide has an authorizer besides RBAC: what it says holds, and that it
// does is noted. So are bindings that lead nowhere.
func TestCanSeeOthersDecide(t *testing.T) {
	env := registry(t)
	objects := distinct(shipped(t), granted(t, "a", "--viewer", "--user=ann"), granted(t, "gone", "--viewer", "--user=ann"))
	objects = append(objects, binding("lost", "no-such-role", nil, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "ann"}))
	decide(t, host(t, env, fleet("ClusterSets"), objects...), map[string]bool{
		"get clustersets/clusters of a": false, "get clustersets/clusters of b": true,
	})
	got := canSee(t, env, 0, "--subject", "ann")
	if want := "*:y no no; a:y no no; b:y yes no"; got.brief() != want {
		t.Errorf("%s, want %s", got.brief(), want)
	}
	want := []string{
		"something other than RBAC decides, such as a webhook or another authorizer of the API server; it allows what no binding gives: get clustersets/clusters of b; it refuses what a binding gives: get clustersets/clusters of a",
		"ClusterRoleBinding lost:user:ann gives the ClusterRole no-such-role, which does not exist: it gives nothing",
		"a role names sets that are not shown, because they don't exist or were not asked for: gone (ClusterRoleBinding clusterregistry:set:gone:viewer:user:ann, ClusterRole clusterregistry:set:gone:viewer)",
	}
	slices.Sort(got.Notes[1:])
	slices.Sort(want[1:])
	if !slices.Equal(got.Notes, want) {
		t.Errorf("it notes %q, want %q", got.Notes, want)
	}
}

// TestCanSeeRights has a caller who lacks rights, and expects what is left, with what to
// ask for.
func TestCanSeeRights(t *testing.T) {
	const all, roles, reviews = "*:y no no; a:y yes no; b:y no no",
		"you may not list ClusterRoles and ClusterRoleBindings here, which needs list on clusterroles and clusterrolebindings of rbac.authorization.k8s.io",
		"you may not create SubjectAccessReviews here, which needs create on subjectaccessreviews of authorization.k8s.io"
	for _, test := range []struct {
		reason string
		// refused are the requests that fail, as verb and resource.
		refused  string
		err      func(resource string) error
		args     string
		want     string
		note     string
		reviewed bool
	}{
		{"bindings", "list clusterrolebindings", forbidden, "", all, "it is not shown by which bindings: " + roles, true},
		{"roles", "list clusterroles", forbidden, "", all, "it is not shown by which bindings: " + roles, true},
		{"reviews", "create subjectaccessreviews", forbidden, "", all, "what is shown is what RBAC gives, and whether something else decides is not known: " + reviews, false},
		{"a registry without reviews", "create subjectaccessreviews", func(string) error { return notServed }, "", all, "what is shown is what RBAC gives, and whether something else decides is not known: this registry does not answer SubjectAccessReviews", false},
		{"a registry without roles", "list clusterrolebindings", func(string) error { return notServed }, "", all, "it is not shown by which bindings: this registry has no ClusterRoles, because a webhook decides in their place", true},
		{"clusters", "list clusters", forbidden, "", all, "you may not list clusters, so that they are neither named nor counted: ask for list on clusters.clusterregistry.k8s.io", true},
		{"sets", "list clustersets", forbidden, "", "*:y no no", "you may not list ClusterSets, so that none is shown: name them, or ask for list on clustersets.clusterregistry.k8s.io", true},
		{"sets that are named", "list clustersets", forbidden, "b a", all, "you may not list ClusterSets, so that it was not checked whether those that you name exist", true},
		{"registries", "list clusterregistries", forbidden, "", all, "whether sets are told apart is not known, and shown as if they were: you may not list ClusterRegistries here: name a namespace with -n, or ask for list on clusterregistries.operator.clusterregistry.io", true},
	} {
		env := registry(t)
		client := host(t, env, fleet("ClusterSets"), distinct(shipped(t), granted(t, "a", "--viewer", "--user=ann"))...)
		decide(t, client, nil)
		verb, resource, _ := strings.Cut(test.refused, " ")
		for _, fake := range []*clienttesting.Fake{&client.Fake, &env.Clusters.Fake, &env.Objects.Fake} {
			fail(fake, verb, resource, test.err(resource))
		}
		got := canSee(t, env, 0, append(strings.Fields(test.args), "--subject", "ann")...)
		if got.brief() != test.want || !slices.Contains(got.Notes, test.note) || got.Reviewed != test.reviewed {
			t.Errorf("%s: %s, reviewed %t, %q; want %s, %q", test.reason, got.brief(), got.Reviewed, got.Notes, test.want, test.note)
		}
		if resource == "clusters" && (got.All.Clusters != nil || got.Verdict != "ann sees the clusters of 1 of 2 sets, changes none") {
			t.Errorf("%s: %q, %s", test.reason, got.All.Clusters, got.Verdict)
		}
	}

	env := registry(t)
	client := host(t, env, fleet("ClusterSets"))
	fail(&client.Fake, "list", "clusterroles", forbidden("clusterroles"))
	fail(&client.Fake, "create", "subjectaccessreviews", forbidden("subjectaccessreviews"))
	if text, code := env.Run(t, NewCanSee(env.Env), "--subject", "ann\x1b"); code != command.ExitFailed || text != "what ann sees can't be told: "+reviews+", and "+roles {
		t.Errorf("neither: %d, %s", code, text)
	}
}

// TestCanSeePartly has a caller who does not see all clusters of a set.
func TestCanSeePartly(t *testing.T) {
	large := set("a")
	large.Status.Clusters = 3
	env := commandtest.New(t, large, set("b"), in("a", "east"))
	decide(t, host(t, env, fleet("ClusterSets")), nil)
	if got, want := canSee(t, env, 0, "--subject", "ann").Notes, "you see 1 of the 3 clusters of a yourself, and others are not named"; !slices.Equal(got, []string{want}) {
		t.Errorf("it notes %q, want %q", got, want)
	}
}

// TestCanSeeErrors has each mistake of the command line, and servers that don't answer.
func TestCanSeeErrors(t *testing.T) {
	for _, test := range []struct {
		line, refused, text string
		code                int
	}{
		{"--subject=", "", "--subject= names no one: give the name by which the API server knows the user", 2},
		{"--subject-group=a", "", "--subject-group needs --subject: a group alone sends no requests; any name will do for its user", 2},
		{"--subject=a --subject-group=", "", "--subject-group= names no group: leave it out", 2},
		{"--subject=a -o wide", "", "--output=wide: use table or json or yaml or jsonpath=TEMPLATE", 2},
		{"--subject=a --visibility=Some", "", "--visibility=Some: use All or ClusterSets", 2},
		{"--subject=a team-*", "", `"team-*" is a pattern, and roles know sets by their names only: name one set, as "kubectl get crset" lists them`, 2},
		{"--subject=a c", "", "the registry has no ClusterSet c: it has a, b", 2},
		{"--subject=a", "list clusters", `list the clusters: the registry (context hub) does not serve clusterregistry.k8s.io/v1beta1: name the context of a registry with --context; a registry of which no server runs is not served either, and "kubectl registry status" says so`, 1},
	} {
		env := registry(t)
		decide(t, host(t, env, fleet("ClusterSets")), nil)
		if verb, resource, is := strings.Cut(test.refused, " "); is {
			fail(&env.Clusters.Fake, verb, resource, notServed)
		}
		if text, code := env.Run(t, NewCanSee(env.Env), strings.Fields(test.line)...); code != test.code || text != test.text {
			t.Errorf("%s: %d, %s", test.line, code, text)
		}
	}
}

// TestCanSeeTable expects what people see, without what would harm their terminal.
func TestCanSeeTable(t *testing.T) {
	env := registry(t)
	decide(t, host(t, env, fleet("ClusterSets"), distinct(shipped(t), granted(t, "a", "--editor", "--group=team\x1b[31m"), bound("s", "clustersets/clusters", "get", "b"))...), nil)
	text, code := env.Run(t, NewCanSee(env.Env), "--subject", "ann", "--subject-group", "team\x1b[31m", "-o", "table")
	const want = `ann sees the clusters of 2 of 2 sets (2), changes those of 1, and may move those of 1

SET     READ SET   SEE   CHANGE   MOVE   CLUSTERS
<all>   yes        no    no       -      3: east, lone, west
a       yes        yes   yes      yes    1: east
b       yes        yes   no       no     1: west
`
	if got := env.Stdout.String(); code != 0 || !strings.HasPrefix(got, want) || strings.Contains(got, "\x1b") || !strings.Contains(got, "get,create,update,patch,delete,deletecollection clustersets/clusters of a") {
		t.Errorf("%d, %s, it prints\n%s", code, text, got)
	}
}
