package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	restclient "k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// forwarding is a desk whose host cluster has authorized what it forwards.
type forwarding struct {
	*desk
	// caller is who is authenticated, and decides whether the host's decision counts.
	caller  user.Info
	decides bool
	// allows is what the host says when it is asked, and asked what it was asked.
	allows bool
	asked  []string
}

// newForwarding starts a server that has the cluster east and enforces guarded fields.
func newForwarding(t *testing.T) *forwarding {
	t.Helper()
	h := &forwarding{caller: forwarded{&user.DefaultInfo{Name: "ann", Groups: []string{"fleet"}}}, decides: true, allows: true}
	h.desk = newDeskOn(t, cluster.GuardedFieldsEnforce, newMemory(), func(c *Config) {
		config := &c.generic.Config
		config.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: h.caller}, true, nil
		})
		config.Authorization.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			of := a.GetPath()
			if a.IsResourceRequest() {
				of = strings.Trim(a.GetResource()+"/"+a.GetSubresource(), "/") + " " + a.GetName()
			}
			h.asked = append(h.asked, a.GetUser().GetName()+" "+a.GetVerb()+" "+of)
			if h.allows {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
		authorizeRequests(config, func(exact authorizer.Authorizer) authorizer.Authorizer {
			return hostFirst(func() bool { return h.decides }, exact)
		})
		reviewOnce(config)
	})
	h.allows, h.asked = false, nil
	return h
}

// TestHostDecision has a host deny everything that it is asked: what it has decided before it
// forwarded a request passes without a question, and nothing else does.
func TestHostDecision(t *testing.T) {
	const nothing = ""
	west := func(spec string) string {
		return `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west"},"spec":{` + spec + `}}`
	}
	ann := &user.DefaultInfo{Name: "ann", Groups: []string{"fleet"}}
	direct := func(h *forwarding) { h.caller = ann }
	undecided := func(h *forwarding) { h.decides = false }
	for _, test := range []struct {
		reason, method, path, kind, body string
		prepare                          func(*forwarding)
		code                             int
		// asked is what the host was asked in the end.
		asked string
	}{
		{"a get", "GET", "v1beta1/clusters/east", "", "", nil, 200, nothing},
		{"a get in v1alpha1", "GET", "v1alpha1/clusters/east", "", "", nil, 200, nothing},
		{"a get of another resource", "GET", "v1beta1/clustersets/none", "", "", nil, 404, nothing},
		{"a list", "GET", "v1beta1/clusters", "", "", nil, 200, nothing},
		{"a list of one", "GET", "v1beta1/clusters?fieldSelector=metadata.name%3Deast", "", "", nil, 200, nothing},
		{"a creation", "POST", "v1beta1/clusters", plain, west(`"displayName":"West"`), nil, 201, nothing},
		{"a label", "PATCH", "v1beta1/clusters/east", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, nil, 200, nothing},
		{"a status", "PATCH", "v1beta1/clusters/east/status", mergePatch, `{"status":{"version":{"kubernetes":"v1.37.0"}}}`, nil, 200, nothing},
		{"a deletion", "DELETE", "v1beta1/clusters/east", "", "", nil, 200, nothing},
		{"a deletion of all", "DELETE", "v1beta1/clusters", "", "", nil, 200, nothing},

		{"a creation by PUT", "PUT", "v1beta1/clusters/west", plain, west(`"displayName":"West"`), nil, 403, "ann create clusters west"},
		{"a creation by apply", "PATCH", "v1beta1/clusters/west?fieldManager=x", applyPatch, west(`"displayName":"West"`), nil, 403, "ann create clusters west"},
		{"a guarded field", "PATCH", "v1beta1/clusters/east", jsonPatch, `[{"op":"add","path":"/spec/endpoints/0/proxyURL","value":"http://evil"}]`, nil, 403, "ann update clusters/endpoints east"},
		{"a guarded field of a new cluster", "POST", "v1beta1/clusters", plain, west(`"id":"two"`), nil, 403, "ann update clusters/identity west"},
		{"a ClusterSet", "PATCH", "v1beta1/clusters/east", mergePatch, `{"spec":{"clusterSet":"a"}}`, nil, 403, "ann create clustersets/join a"},
		{"a path", "GET", "", "", "", nil, 403, "ann get /apis/clusterregistry.k8s.io/"},
		{"a version's path", "GET", "v1beta1", "", "", nil, 403, "ann get /apis/clusterregistry.k8s.io/v1beta1"},
		{"a special verb", "GET", "v1beta1/proxy/clusters/east", "", "", nil, 403, "ann proxy clusters east"},

		{"a caller of its own", "GET", "v1beta1/clusters/east", "", "", direct, 403, "ann get clusters east"},
		{"a list of a caller of its own", "GET", "v1beta1/clusters", "", "", direct, 403, "ann list clusters"},
		{"a creation of a caller of its own", "POST", "v1beta1/clusters", plain, west(""), direct, 403, "ann create clusters"},
		{"a host that may not decide", "GET", "v1beta1/clusters/east", "", "", undecided, 403, "ann get clusters east"},
		{"a list on a host that may not decide", "GET", "v1beta1/clusters", "", "", undecided, 403, "ann list clusters"},
		{"a creation on a host that may not decide", "POST", "v1beta1/clusters", plain, west(""), undecided, 403, "ann create clusters"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			h := newForwarding(t)
			if test.prepare != nil {
				test.prepare(h)
			}
			code, answer, _ := h.send(test.method, test.path, test.kind, test.body)
			last := ""
			if len(h.asked) > 0 {
				last = strings.TrimSpace(h.asked[len(h.asked)-1])
			}
			if code != test.code || last != test.asked {
				t.Errorf("%d, and the host was asked %q; want %d and %q: %.300s", code, h.asked, test.code, test.asked, answer)
			}
		})
	}
}

// TestHostDecisionOfAnother: the host decided on its caller, not on whom that one impersonates,
// and on no other API group.
func TestHostDecisionOfAnother(t *testing.T) {
	h := newForwarding(t)
	send := func(path string, header http.Header) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header = header
		recorder := httptest.NewRecorder()
		h.handler.ServeHTTP(recorder, r)
		return recorder.Code
	}
	const east = "/apis/clusterregistry.k8s.io/v1beta1/clusters/east"
	impersonate := http.Header{"Impersonate-User": {"bob"}}
	if code := send(east, impersonate); code != http.StatusForbidden || !slices.Contains(h.asked, "ann impersonate users bob") {
		t.Errorf("an impersonation: %d, and the host was asked %q", code, h.asked)
	}
	// Who may impersonate is someone else from then on.
	h.asked, h.allows = nil, true
	if code := send(east, impersonate); code != http.StatusOK || !slices.Contains(h.asked, "bob get clusters east") {
		t.Errorf("an impersonated caller: %d, and the host was asked %q", code, h.asked)
	}
	h.asked, h.allows = nil, false
	for _, path := range []string{"/apis/example.com/v1beta1/clusters/east", "/api/v1/secrets/east", "/metrics", "/openapi/v3"} {
		if code := send(path, nil); code != http.StatusForbidden || len(h.asked) == 0 {
			t.Errorf("%s: %d, and the host was asked %q", path, code, h.asked)
		}
		h.asked = nil
	}
}

// TestHostFirst: attributes that are not the request's own are not what the host decided on.
func TestHostFirst(t *testing.T) {
	own := authorizer.AttributesRecord{User: forwarded{&user.DefaultInfo{Name: "ann"}}, Verb: "update", APIGroup: "clusterregistry.k8s.io", APIVersion: "v1beta1", Resource: "clusters", Name: "east", ResourceRequest: true}
	ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: own.Verb, APIGroup: own.APIGroup, APIVersion: own.APIVersion, Resource: own.Resource, Name: own.Name})
	for reason, test := range map[string]struct {
		change func(*authorizer.AttributesRecord)
		want   authorizer.Decision
	}{
		"its own":          {func(*authorizer.AttributesRecord) {}, authorizer.DecisionAllow},
		"another caller":   {func(a *authorizer.AttributesRecord) { a.User = &user.DefaultInfo{Name: "ann"} }, authorizer.DecisionDeny},
		"another verb":     {func(a *authorizer.AttributesRecord) { a.Verb = "create" }, authorizer.DecisionDeny},
		"another name":     {func(a *authorizer.AttributesRecord) { a.Name = "west" }, authorizer.DecisionDeny},
		"no name":          {func(a *authorizer.AttributesRecord) { a.Name = "" }, authorizer.DecisionDeny},
		"a namespace":      {func(a *authorizer.AttributesRecord) { a.Namespace = "team" }, authorizer.DecisionDeny},
		"another resource": {func(a *authorizer.AttributesRecord) { a.Resource = "clustersets" }, authorizer.DecisionDeny},
		"a subresource":    {func(a *authorizer.AttributesRecord) { a.Subresource = "endpoints" }, authorizer.DecisionDeny},
		"another group":    {func(a *authorizer.AttributesRecord) { a.APIGroup = "example.com" }, authorizer.DecisionDeny},
		"another version":  {func(a *authorizer.AttributesRecord) { a.APIVersion = "v1" }, authorizer.DecisionDeny},
		"a path":           {func(a *authorizer.AttributesRecord) { a.ResourceRequest = false }, authorizer.DecisionDeny},
	} {
		asks := own
		test.change(&asks)
		denies := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionDeny, "", nil
		})
		decision, _, err := hostFirst(func() bool { return true }, denies).Authorize(ctx, asks)
		if err != nil || decision != test.want {
			t.Errorf("%s: %s, %v", reason, decision, err)
		}
		if decision, _, _ := hostFirst(func() bool { return true }, denies).Authorize(t.Context(), asks); decision != authorizer.DecisionDeny {
			t.Errorf("%s, without a request: %s", reason, decision)
		}
	}
}

// TestDecidingHost follows a host through an upgrade and through silence.
func TestDecidingHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		says, fails := "v1.36.3", errors.New("the host does not answer")
		h := &decidingHost{version: func(context.Context) (string, error) {
			if says == "" {
				return "", fails
			}
			return says, nil
		}}
		expect := func(reason string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := h.decides(); got != want {
				t.Errorf("%s: the host decides: %t", reason, got)
			}
		}
		expect("nothing is known", false)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.follow(ctx)
		}()
		expect("a known version", true)
		says = ""
		time.Sleep(hostRecheck + time.Second)
		expect("no answer, for a short time", true)
		time.Sleep(hostKnown)
		expect("no answer, for long", false)
		says = "nonsense"
		time.Sleep(hostRecheck)
		expect("no version", false)
		says = "v" + lastDeciding + ".9-gke.100"
		time.Sleep(hostRecheck)
		expect("the newest known version", true)
		says = "v1.38.0-alpha.1"
		time.Sleep(hostRecheck)
		expect("one of its servers is newer", false)
		says = "v1.36.3"
		time.Sleep(10 * hostRecheck)
		expect("another one is not", false)
		<-ended
	})
}

// TestHostVersion asks a server for its version, each time on another connection.
func TestHostVersion(t *testing.T) {
	var from []string
	code := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr)
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"gitVersion":"v1.36.%d","path":%q}`, len(from), r.URL.Path)
	}))
	defer server.Close()
	ask, err := hostVersion(&restclient.Config{Host: server.URL, TLSClientConfig: restclient.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1.36.1", "v1.36.2"} {
		if got, err := ask(t.Context()); err != nil || got != want {
			t.Errorf("%q, %v; want %s", got, err, want)
		}
	}
	if from[0] == from[1] {
		t.Error("it was asked on one connection, and so one of several servers")
	}
	code = http.StatusForbidden
	if got, err := ask(t.Context()); err == nil {
		t.Errorf("a refusal is the version %q", got)
	}
}
