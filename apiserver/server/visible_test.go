package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// grants are who may do what to the clusters of which sets: by user or group, verb and
// set. An empty set stands for all.
type grants struct {
	mu    sync.Mutex
	given map[grant]bool
	fails bool
	// failing is the verb that no review of is answered, if only that one fails.
	failing string
	asked   []string
}

type grant struct{ who, verb, set string }

// set gives or takes away.
func (g *grants) set(given bool, who, set string, verbs ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, verb := range verbs {
		g.given[grant{who, verb, set}] = given
	}
}

// may is the rule that a server must go by.
func (g *grants) may(names []string, verb, set string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(names, func(who string) bool {
		return g.given[grant{who, verb, ""}] || set != "" && g.given[grant{who, verb, set}]
	})
}

// Authorize lets all requests pass, and answers reviews of clustersets/clusters.
func (g *grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetSubresource() != "clusters" {
		return authorizer.DecisionAllow, "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf("%s %s %s/%s %s/%s %q %t", a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(), a.IsResourceRequest()))
	if g.fails && (g.failing == "" || g.failing == a.GetVerb()) {
		return authorizer.DecisionNoOpinion, "", errors.New("the host does not answer")
	}
	for _, who := range append([]string{a.GetUser().GetName()}, a.GetUser().GetGroups()...) {
		if g.given[grant{who, a.GetVerb(), a.GetName()}] {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (g *grants) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(g.Authorize(ctx, a))
}

func (*grants) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// take returns what was asked since the last time.
func (g *grants) take() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.asked
	g.asked = nil
	slices.Sort(out)
	return out
}

// office is a registry of two servers that show clusters by their sets.
type office struct {
	t       *testing.T
	stored  *history
	grants  *grants
	servers []*httptest.Server
}

var quick = visibility.Periods{Recheck: 10 * time.Millisecond}

// newOffice starts the servers. A request names its user in a header, with its groups.
func newOffice(t *testing.T, periods visibility.Periods, remote ...bool) *office {
	t.Helper()
	o := &office{t: t, stored: newHistory(), grants: &grants{given: map[grant]bool{}}}
	for _, verb := range []string{"get", "create", "update", "patch", "delete", "deletecollection"} {
		o.grants.set(true, "root", "", verb)
	}
	for range 2 {
		config := &Config{generic: genericserver.NewRecommendedConfig(codecs), collection: rest.Unsupported, guarded: cluster.GuardedFieldsOff, visible: visible{visibility: visibility.ClusterSets, periods: periods, remote: len(remote) > 0}}
		options, err := NewOptions()
		if err != nil {
			t.Fatal(err)
		}
		generic := &config.generic.Config
		describe(generic)
		generic.ExternalAddress, generic.LoopbackClientConfig = "localhost:443", &restclient.Config{}
		generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
		generic.RESTOptionsGetter = o.stored
		generic.MergedResourceConfig = nil
		generic.RequestTimeout = options.Run.RequestTimeout
		generic.Authorization.Authorizer = o.grants
		generic.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			names := strings.Split(r.Header.Get("As"), ",")
			return &authenticator.Response{User: &user.DefaultInfo{Name: names[0], Groups: names[1:], Extra: map[string][]string{user.CredentialIDKey: r.Header.Values("Credential")}}}, true, nil
		})
		generic.AdmissionControl = cluster.Complete(nil)
		server, err := config.Complete().New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Destroy)
		served := httptest.NewServer(server.Handler)
		t.Cleanup(served.Close)
		o.servers = append(o.servers, served)
	}
	return o
}

const apiGroup = "/apis/clusterregistry.k8s.io/"

// open makes a request to one of the servers.
func (o *office) open(ctx context.Context, server int, as, method, path, kind, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, o.servers[server].URL+apiGroup+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("As", as)
	accept := "application/json"
	if strings.HasPrefix(kind, "table") {
		kind, accept = plain, "application/json;as=Table;v=v1;g=meta.k8s.io"
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", kind)
	return http.DefaultClient.Do(request)
}

// do makes a request, and returns the answer.
func (o *office) do(server int, as, method, path, kind, body string) (int, string) {
	o.t.Helper()
	response, err := o.open(o.t.Context(), server, as, method, path, kind, body)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// must makes a request of root that succeeds.
func (o *office) must(method, path, kind, body string) {
	o.t.Helper()
	if code, answer := o.do(0, "root", method, path, kind, body); code/100 != 2 {
		o.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
}

func (o *office) makeSets(names ...string) {
	o.t.Helper()
	for _, name := range names {
		o.must("POST", "v1beta1/clustersets", plain, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"ClusterSet","metadata":{"name":"`+name+`"}}`)
	}
}

func inSet(name, set string) string {
	return `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"` + name + `"},"spec":{"clusterSet":"` + set + `"}}`
}

func (o *office) put(name, set string) {
	o.t.Helper()
	o.must("POST", "v1beta1/clusters", plain, inSet(name, set))
}

func (o *office) move(name, set string) {
	o.t.Helper()
	o.must("PATCH", "v1beta1/clusters/"+name, mergePatch, `{"spec":{"clusterSet":"`+set+`"}}`)
}

// list is a list as a client reads it.
type list struct {
	Metadata metav1.ListMeta
	Items    []v1beta1.Cluster
	Rows     []struct {
		Object metav1.PartialObjectMetadata
	}
}

func (l list) names() []string {
	out := []string{}
	for _, item := range l.Items {
		out = append(out, item.Name)
	}
	for _, row := range l.Rows {
		out = append(out, row.Object.Name)
	}
	slices.Sort(out)
	return out
}

// decode reads a list from an answer, which must be one.
func decode(response *http.Response) (out list, err error) {
	if response.StatusCode != http.StatusOK {
		return out, fmt.Errorf("answered %d", response.StatusCode)
	}
	return out, json.NewDecoder(response.Body).Decode(&out)
}

// read returns a list, which must succeed.
func (o *office) read(server int, as, path, kind string) list {
	o.t.Helper()
	code, body := o.do(server, as, "GET", path, kind, "")
	var out list
	if err := json.Unmarshal([]byte(body), &out); code != http.StatusOK || err != nil {
		o.t.Fatalf("%s reads %s: %d %s (%v)", as, path, code, body, err)
	}
	return out
}

// small is an office with two sets and three clusters. Ann reads blue, bob edits green and
// reads blue, of which ann's group is one reason.
func small(t *testing.T, periods visibility.Periods) *office {
	o := newOffice(t, periods)
	o.makeSets("blue", "green")
	for name, set := range map[string]string{"b1": "blue", "b2": "blue", "g1": "green", "none": ""} {
		o.put(name, set)
	}
	o.grants.set(true, "team", "blue", "get")
	o.grants.set(true, "bob", "blue", "get")
	o.grants.set(true, "bob", "green", "get", "create", "update", "patch", "delete", "deletecollection")
	return o
}

// TestVisibleReads has every way of reading agree.
func TestVisibleReads(t *testing.T) {
	o := small(t, quick)
	for _, test := range []struct {
		as   string
		sees []string
	}{
		{"root", []string{"b1", "b2", "g1", "none"}}, {"ann,team", []string{"b1", "b2"}}, {"bob", []string{"b1", "b2", "g1"}}, {"eve", []string{}},
	} {
		for _, path := range []string{"v1beta1/clusters", "v1alpha1/clusters", "v1beta1/clusters?resourceVersion=0", "v1beta1/clusters?fieldSelector=metadata.name!=x", "v1beta1/clusters?labelSelector=!x"} {
			for _, kind := range []string{plain, "table"} {
				if got := o.read(0, test.as, path, kind).names(); !slices.Equal(got, test.sees) {
					t.Errorf("%s reads %s as %s: %q", test.as, path, kind, got)
				}
			}
		}
		for set, members := range map[string][]string{"blue": {"b1", "b2"}, "green": {"g1"}} {
			want := slices.DeleteFunc(slices.Clone(members), func(name string) bool { return !slices.Contains(test.sees, name) })
			for _, selector := range []string{"fieldSelector=spec.clusterSet%3D", "labelSelector=" + v1beta1.ClusterSetLabel + "%3D"} {
				if got := o.read(1, test.as, "v1beta1/clusters?"+selector+set, plain).names(); !slices.Equal(got, want) {
					t.Errorf("%s selects %s by %s: %q", test.as, set, selector, got)
				}
			}
		}
		for _, name := range []string{"b1", "b2", "g1", "none"} {
			for _, path := range []string{"v1beta1/clusters/" + name, "v1beta1/clusters/" + name + "/status", "v1alpha1/clusters/" + name, "v1alpha1/clusters/" + name + "/status"} {
				for _, kind := range []string{plain, "table"} {
					code, body := o.do(0, test.as, "GET", path, kind, "")
					_, absent := o.do(0, test.as, "GET", strings.Replace(path, name, "xyz", 1), kind, "")
					if slices.Contains(test.sees, name) {
						if code != http.StatusOK {
							t.Errorf("%s gets %s: %d %s", test.as, path, code, body)
						}
					} else if code != http.StatusNotFound || strings.ReplaceAll(body, name, "xyz") != absent {
						t.Errorf("%s gets %s: %d %s, and of an absent one %s", test.as, path, code, body, absent)
					}
				}
			}
		}
	}
}

// TestVisiblePages reads page by page: no page says that there is more than the caller sees.
func TestVisiblePages(t *testing.T) {
	o := small(t, quick)
	for _, test := range []struct {
		limit int
		pages [][]string
	}{{1, [][]string{{"b1"}, {"b2"}}}, {2, [][]string{{"b1", "b2"}}}, {3, [][]string{{"b1", "b2"}}}} {
		var pages [][]string
		next := ""
		for {
			page := o.read(len(pages)%2, "ann,team", fmt.Sprintf("v1beta1/clusters?limit=%d&continue=%s", test.limit, next), plain)
			pages = append(pages, page.names())
			if page.Metadata.RemainingItemCount != nil {
				t.Errorf("limit %d: %d are left", test.limit, *page.Metadata.RemainingItemCount)
			}
			if next = page.Metadata.Continue; next == "" {
				break
			}
		}
		if fmt.Sprint(pages) != fmt.Sprint(test.pages) {
			t.Errorf("limit %d: pages %q, want %q", test.limit, pages, test.pages)
		}
	}
	if page := o.read(0, "root", "v1beta1/clusters?limit=1", plain); page.Metadata.RemainingItemCount == nil {
		t.Error("who sees all is not told how many are left")
	}
	// A grant between two pages, noticed by the other server.
	page := o.read(0, "ann,team", "v1beta1/clusters?limit=1", plain)
	o.grants.set(true, "ann", "green", "get")
	o.read(1, "ann,team", "v1beta1/clusters", plain)
	code, body := o.do(0, "ann,team", "GET", "v1beta1/clusters?limit=1&continue="+page.Metadata.Continue, plain, "")
	if code != http.StatusGone || !strings.Contains(body, "list again") {
		t.Errorf("the next page: %d %s", code, body)
	}
}

// TestVisibleWrites answers for what is not seen as for what is not there, and says what is
// missing for what is seen.
func TestVisibleWrites(t *testing.T) {
	const named = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"NAME","labels":{"a":"b"}}%s}`
	withUID := strings.Replace(fmt.Sprintf(named, ""), `"labels"`, `"uid":"5","labels"`, 1)
	for _, test := range []struct {
		reason, method, path, kind, body, verb string
	}{
		{"put", "PUT", "", plain, fmt.Sprintf(named, ""), "update"},
		{"put with a UID", "PUT", "", plain, withUID, "update"},
		{"put with a version", "PUT", "", plain, strings.Replace(fmt.Sprintf(named, ""), `"labels"`, `"resourceVersion":"3","labels"`, 1), "update"},
		{"dry put", "PUT", "?dryRun=All", plain, fmt.Sprintf(named, ""), "update"},
		{"merge", "PATCH", "", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, "patch"},
		{"json patch", "PATCH", "", jsonPatch, `[{"op":"test","path":"/spec/clusterSet","value":"blue"}]`, "patch"},
		{"apply", "PATCH", "?fieldManager=x", applyPatch, fmt.Sprintf(named, ""), "patch"},
		{"dry apply", "PATCH", "?fieldManager=x&dryRun=All", applyPatch, fmt.Sprintf(named, ""), "patch"},
		{"put a status", "PUT", "/status", plain, fmt.Sprintf(named, ""), "update"},
		{"put a status with a UID", "PUT", "/status", plain, withUID, "update"},
		{"patch a status", "PATCH", "/status", mergePatch, `{"status":{"version":{"kubernetes":"v1"}}}`, "patch"},
		{"apply a status", "PATCH", "/status?fieldManager=x", applyPatch, fmt.Sprintf(named, `,"status":{"version":{"kubernetes":"v1"}}`), "patch"},
		{"delete", "DELETE", "", plain, "", "delete"},
		{"dry delete", "DELETE", "?dryRun=All", plain, "", "delete"},
		{"delete with a UID", "DELETE", "", plain, `{"preconditions":{"uid":"5"}}`, "delete"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			o := small(t, quick)
			send := func(as, name string) (int, string) {
				return o.do(0, as, test.method, "v1beta1/clusters/"+name+test.path, test.kind, strings.ReplaceAll(test.body, "NAME", name))
			}
			for _, as := range []string{"ann,team", "eve"} {
				code, body := send(as, "g1")
				absentCode, absent := send(as, "xyz")
				if code != absentCode || strings.ReplaceAll(body, "g1", "xyz") != absent || code/100 == 2 {
					t.Errorf("%s: %d %s, and of an absent one: %d %s", as, code, body, absentCode, absent)
				}
			}
			code, body := send("ann,team", "b1")
			if want := fmt.Sprintf(`User \"ann\" cannot %s resource \"clustersets/clusters\" in API group \"clusterregistry.k8s.io\" for the name \"blue\"`, test.verb); code != http.StatusForbidden || !strings.Contains(body, want) {
				t.Errorf("what is seen: %d %s, want %s", code, body, want)
			}
			if code, body := send("bob", "g1"); !strings.Contains(test.body+test.reason, "version") && !strings.Contains(test.reason, "UID") && !strings.Contains(test.reason, "json") && code/100 != 2 {
				t.Errorf("what may be changed: %d %s", code, body)
			}
		})
	}
}

// TestVisibleCreation asks for the set of the new cluster, whichever way it is created.
func TestVisibleCreation(t *testing.T) {
	for _, test := range []struct {
		reason, as, name, set string
		want                  int
	}{
		{"in a set of his", "bob", "new", "green", http.StatusCreated},
		{"in a set that he reads", "bob", "new", "blue", http.StatusForbidden},
		{"in no set", "bob", "new", "", http.StatusForbidden},
		{"in a set that she does not see", "ann,team", "new", "green", http.StatusForbidden},
		{"a name that he does not see", "bob", "none", "green", http.StatusConflict},
		{"a name that she does not see, and may not create", "ann,team", "none", "green", http.StatusForbidden},
	} {
		for _, way := range []struct{ method, path, kind string }{{"POST", "", plain}, {"POST", "?dryRun=All", plain}, {"PUT", "/NAME", plain}, {"PUT", "/NAME?dryRun=All", plain}, {"PATCH", "/NAME?fieldManager=x", applyPatch}} {
			o := small(t, quick)
			before := len(o.stored.log)
			code, body := o.do(0, test.as, way.method, "v1beta1/clusters"+strings.ReplaceAll(way.path, "NAME", test.name), way.kind, inSet(test.name, test.set))
			if code != test.want && (code != http.StatusOK || test.want != http.StatusCreated) {
				t.Errorf("%s by %s %s: %d %s", test.reason, way.method, way.path, code, body)
			}
			if test.want == http.StatusForbidden && !strings.Contains(body, `cannot create resource \"clustersets/clusters\"`) {
				t.Errorf("%s by %s %s: %s", test.reason, way.method, way.path, body)
			}
			if _, clusters := o.stored.at("/clusters/", o.stored.revision); test.want != http.StatusCreated && len(clusters) != 4 {
				t.Errorf("%s by %s %s: stored %v since %d", test.reason, way.method, way.path, clusters, before)
			}
		}
	}
}

// TestVisibleCollections deletes what is seen, or nothing.
func TestVisibleCollections(t *testing.T) {
	for _, test := range []struct {
		as, query string
		want      int
		left      string
	}{
		{"eve", "", http.StatusOK, "b1 b2 g1 none"},
		{"ann,team", "", http.StatusForbidden, "b1 b2 g1 none"},
		{"bob", "", http.StatusForbidden, "b1 b2 g1 none"},
		{"bob", "?fieldSelector=spec.clusterSet%3Dgreen", http.StatusOK, "b1 b2 none"},
		{"bob", "?fieldSelector=spec.clusterSet%3Dgreen&dryRun=All", http.StatusOK, "b1 b2 g1 none"},
		{"ann,team", "?fieldSelector=spec.clusterSet%3Dgreen", http.StatusOK, "b1 b2 g1 none"},
		{"root", "?limit=1", http.StatusOK, "b2 g1 none"},
		{"root", "", http.StatusOK, ""},
	} {
		o := small(t, quick)
		code, body := o.do(0, test.as, "DELETE", "v1beta1/clusters"+test.query, plain, "")
		if left := strings.Join(o.read(0, "root", "v1beta1/clusters", plain).names(), " "); code != test.want || left != test.left {
			t.Errorf("%s deletes %s: %d %s, and leaves %s", test.as, test.query, code, body, left)
		}
	}
}

// TestVisibleFailures answers 503 when a review fails: nothing is hidden for it.
func TestVisibleFailures(t *testing.T) {
	o := small(t, quick)
	o.grants.fails = true
	for _, request := range []struct{ method, path, kind, body string }{
		{"GET", "v1beta1/clusters", plain, ""}, {"GET", "v1beta1/clusters?watch=true", plain, ""}, {"GET", "v1beta1/clusters/b1", plain, ""}, {"GET", "v1beta1/clusters/b1/status", plain, ""},
		{"POST", "v1beta1/clusters", plain, inSet("new", "green")}, {"PUT", "v1beta1/clusters/b1", plain, inSet("b1", "blue")}, {"PATCH", "v1beta1/clusters/b1", mergePatch, `{}`},
		{"DELETE", "v1beta1/clusters/b1", plain, ""}, {"DELETE", "v1beta1/clusters", plain, ""},
	} {
		if code, body := o.do(0, "bob", request.method, request.path, request.kind, request.body); code != http.StatusServiceUnavailable || !strings.Contains(body, "try again") {
			t.Errorf("%s %s: %d %s", request.method, request.path, code, body)
		}
	}
}

// TestVisibleOutage tells no one by a failure whether a cluster exists that they don't see:
// while no review is answered, or those are not that none has kept.
func TestVisibleOutage(t *testing.T) {
	const body = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"NAME"}}`
	for reason, periods := range map[string]visibility.Periods{"none": quick, "kept": {Cache: time.Hour, Recheck: time.Hour}} {
		for _, request := range []struct{ method, path, kind, body string }{
			{"GET", "", plain, ""}, {"GET", "/status", plain, ""}, {"PUT", "", plain, body}, {"PUT", "/status", plain, body}, {"PUT", "", plain, strings.Replace(body, `"name"`, `"uid":"5","name"`, 1)},
			{"PATCH", "", mergePatch, `{}`}, {"PATCH", "/status", mergePatch, `{}`}, {"PATCH", "?fieldManager=x", applyPatch, body}, {"DELETE", "", plain, ""},
		} {
			o := small(t, periods)
			o.do(0, "ann,team", "GET", "v1beta1/clusters/xyz", plain, "")
			o.grants.mu.Lock()
			o.grants.fails = true
			o.grants.mu.Unlock()
			send := func(name string) (int, string) {
				return o.do(0, "ann,team", request.method, "v1beta1/clusters/"+name+request.path, request.kind, strings.ReplaceAll(request.body, "NAME", name))
			}
			code, answer := send("g1")
			absentCode, absent := send("xyz")
			if code != absentCode || strings.ReplaceAll(answer, "g1", "xyz") != absent {
				t.Errorf("%s %s with answers %s: %d %s, and of an absent one: %d %s", request.method, request.path, reason, code, answer, absentCode, absent)
			}
		}
	}
}

// TestVisibleTaken says of a name that it is taken, and no more, unless its cluster is known
// to be seen.
func TestVisibleTaken(t *testing.T) {
	o := small(t, quick)
	o.must("POST", "v1beta1/clusters", plain, strings.Replace(inSet("going", ""), `"name"`, `"finalizers":["example.com/x"],"name"`, 1))
	o.must("DELETE", "v1beta1/clusters/going", plain, "")
	for _, fails := range []bool{false, true} {
		o.grants.mu.Lock()
		o.grants.fails, o.grants.failing = fails, "get"
		o.grants.mu.Unlock()
		code, body := o.do(0, "bob", "POST", "v1beta1/clusters", plain, inSet("going", "green"))
		if code != http.StatusConflict || strings.Contains(body, "deleted") {
			t.Errorf("while reviews fail (%t): %d %s", fails, code, body)
		}
	}
}

// TestReviews counts what is asked: once, while it is kept.
func TestReviews(t *testing.T) {
	o := small(t, visibility.Periods{Cache: time.Minute, Recheck: time.Minute})
	o.grants.take()
	line := func(name string) string {
		return fmt.Sprintf("ann get clusterregistry.k8s.io/v1beta1 clustersets/clusters %q true", name)
	}
	want := []string{line(""), line("blue"), line("green")}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { o.do(0, "ann,team", "GET", "v1beta1/clusters", plain, "") })
	}
	wait.Wait()
	o.do(0, "ann,team", "GET", "v1beta1/clusters/g1", plain, "")
	if asked := o.grants.take(); !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	// Another server asks once, too, and again only what it must when the record differs.
	o.grants.set(true, "ann", "green", "get")
	if got := o.read(1, "ann,team", "v1beta1/clusters", plain).names(); len(got) != 3 {
		t.Errorf("the other server shows %q", got)
	}
	o.grants.take()
	if got := o.read(0, "ann,team", "v1beta1/clusters", plain).names(); len(got) != 3 {
		t.Errorf("the first one shows %q, by reviews of before", got)
	}
	if asked := o.grants.take(); !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

// TestReviewsContinue lists for a caller with more sets than can be reviewed in the time of one
// request: each try continues where the one before has stopped, also when another server has
// recorded something else, so that nothing counts which was asked before.
func TestReviewsContinue(t *testing.T) {
	t.Parallel()
	o := newOffice(t, visibility.Periods{Cache: time.Minute, Recheck: time.Minute}, true)
	for i := range reviewsAtOnce + 20 {
		o.makeSets(fmt.Sprintf("set-%d", i))
	}
	o.put("c", "set-7")
	list := func(server int, want ...string) (tries int) {
		t.Helper()
		for range 20 {
			// Half of the time is for reviews, and the rest for an answer that says so: a
			// computer so busy that all of it has passed gives another one, which proves nothing.
			began := time.Now()
			code, body := o.do(server, "ann,team", "GET", "v1beta1/clusters?timeout=4s", plain, "")
			if over := time.Since(began) >= 4*time.Second; over && (code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout) && !strings.Contains(body, "set-") {
				continue
			}
			tries++
			if code == http.StatusOK {
				if got := o.read(server, "ann,team", "v1beta1/clusters", plain).names(); !slices.Equal(got, want) {
					t.Errorf("server %d shows %q, want %q", server, got, want)
				}
				return tries
			}
			if code != http.StatusServiceUnavailable || !strings.Contains(body, "try again until they are") || !strings.Contains(body, `"retryAfterSeconds":1`) || strings.Contains(body, "set-") {
				t.Fatalf("try %d: %d %s", tries, code, body)
			}
		}
		t.Fatalf("not after %d tries", tries)
		return 0
	}
	list(0)
	o.grants.set(true, "ann", "set-7", "get")
	if tries := list(1, "c"); tries < 2 {
		t.Error("the other server has not asked again what it had asked before it knew of the record")
	}
}

// TestVisibilityAll asks nothing.
func TestVisibilityAll(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsOff)
	for path := range d.stored.objects {
		if strings.HasPrefix(path, "/clusterids/views") {
			t.Errorf("recorded %s", path)
		}
	}
	for _, flags := range []func(*Options){
		func(o *Options) { o.Visibility = "Some" },
		func(o *Options) { o.VisibilityPeriods.Recheck = 0 },
		func(o *Options) { o.VisibilityPeriods.Cache = -1 },
	} {
		options, err := NewOptions()
		if err != nil {
			t.Fatal(err)
		}
		flags(options)
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), "--visibility") {
			t.Errorf("%+v: %v", options.VisibilityPeriods, err)
		}
	}
}
