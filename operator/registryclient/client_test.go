package registryclient

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/internal/direct"
)

// answer is what a registry of a test answers.
type answer struct {
	status int
	body   string
}

// answers are answers by method and path.
type answers map[string]answer

const (
	base  = "/apis/clusterregistry.k8s.io/v1beta1"
	tells = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "clusterregistry.k8s.io/v1beta1", "resources": [{"name": "clusters", "kind": "Cluster", "verbs": ["get"]}]}`
	east  = `{"kind": "Cluster", "apiVersion": "clusterregistry.k8s.io/v1beta1", "metadata": {"name": "east", "resourceVersion": "7"}, "spec": {"displayName": "East"}}`
	list  = `{"kind": "ClusterList", "apiVersion": "clusterregistry.k8s.io/v1beta1", "metadata": {}, "items": [` + east + `]}`
)

// serve returns a client of a registry that answers so, and what it was asked.
func serve(t *testing.T, all answers) (*Client, *[]string) {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(all.handler(asked))
	t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client, asked
}

// handler answers, and notes what it was asked.
func (a answers) handler(asked *[]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		said, ok := a[r.Method+" "+r.URL.Path]
		if !ok {
			said = refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
		}
		w.WriteHeader(said.status)
		fmt.Fprint(w, said.body)
	})
}

// whole is what a registry with one cluster answers.
func whole() answers {
	return answers{"GET " + base: {http.StatusOK, tells}, "GET " + base + "/clusters": {http.StatusOK, list}, "POST " + base + "/clusters": {http.StatusCreated, east}}
}

// refusal is what an API server answers when it does not do something.
func refusal(code int, reason metav1.StatusReason) answer {
	return answer{code, fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d, "message": "no"}`, reason, code)}
}

func TestVerify(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(answers)
		says   string
	}{
		"all is well": {func(answers) {}, ""},
		"a policy of the host refuses the cluster": {func(a answers) {
			a["POST "+base+"/clusters"] = refusal(http.StatusForbidden, metav1.StatusReasonForbidden)
		}, ""},
		"validation does": {func(a answers) {
			a["POST "+base+"/clusters"] = refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		}, ""},
		"it is not discovered": {func(a answers) { delete(a, "GET "+base) }, "clusterregistry.k8s.io/v1beta1 is not discovered"},
		"it is discovered without clusters": {func(a answers) {
			a["GET "+base] = answer{http.StatusOK, strings.Replace(tells, `"name": "clusters"`, `"name": "others"`, 1)}
		}, "is discovered without clusters"},
		"reads fail": {func(a answers) {
			a["GET "+base+"/clusters"] = refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}, "clusters can't be listed as v1beta1"},
		"writes fail": {func(a answers) {
			a["POST "+base+"/clusters"] = refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		}, "no cluster can be created as v1beta1, not even in a dry run"},
	} {
		all := whole()
		test.change(all)
		client, asked := serve(t, all)
		err := client.Verify(t.Context(), []string{"v1beta1"})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
		for _, request := range *asked {
			if strings.HasPrefix(request, "POST") && !strings.Contains(request, "dryRun=All") {
				t.Errorf("%s: it writes: %s", reason, request)
			}
		}
	}
}

// TestOneConnection asks an independent registry, which no transport of another client may be
// used for: whatever one client asks, it connects once.
func TestOneConnection(t *testing.T) {
	connections, all := atomic.Int32{}, whole()
	server := httptest.NewUnstartedServer(all.handler(new([]string)))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := New(&rest.Config{Host: server.URL, Proxy: direct.Proxy, TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Verify(t.Context(), []string{"v1beta1"}); err != nil {
		t.Fatal(err)
	}
	all["GET "+base+"/clusters"] = answer{http.StatusOK, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": []}`}
	at, err := client.Retract(t.Context(), Retraction{Managers: []string{"one"}}, func() bool { return false })
	if err != nil || !at.Complete() {
		t.Fatalf("%+v, %v", at, err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("it connects %d times", n)
	}
}

func TestRewrite(t *testing.T) {
	const cluster = base + "/clusters/east"
	for reason, test := range map[string]struct {
		change  func(answers)
		updates bool
		says    string
	}{
		"it is stored anew":                   {func(answers) {}, true, ""},
		"it is gone":                          {func(a answers) { delete(a, "GET "+cluster) }, false, ""},
		"it goes meanwhile":                   {func(a answers) { delete(a, "PUT "+cluster) }, true, ""},
		"someone else writes it all the time": {func(a answers) { a["PUT "+cluster] = refusal(http.StatusConflict, metav1.StatusReasonConflict) }, true, "rewrite cluster east: "},
		"it can't be written":                 {func(a answers) { a["PUT "+cluster] = refusal(http.StatusForbidden, metav1.StatusReasonForbidden) }, true, "rewrite cluster east: "},
	} {
		all := answers{"GET " + cluster: {http.StatusOK, east}, "PUT " + cluster: {http.StatusOK, east}}
		test.change(all)
		client, asked := serve(t, all)
		err := client.Rewrite(t.Context(), "v1beta1", "east")
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
		if updated := slices.ContainsFunc(*asked, func(request string) bool { return strings.HasPrefix(request, "PUT "+cluster) }); updated != test.updates {
			t.Errorf("%s: it asks %q", reason, *asked)
		}
	}
}

// TestRewriteConflicts has someone else write the cluster between the reading and the
// update of it: both are done again.
func TestRewriteConflicts(t *testing.T) {
	const cluster = base + "/clusters/east"
	all := answers{"GET " + cluster: {http.StatusOK, east}, "PUT " + cluster: refusal(http.StatusConflict, metav1.StatusReasonConflict)}
	client, asked := serve(t, all)
	if err := client.Rewrite(t.Context(), "v1beta1", "east"); !apierrors.IsConflict(err) || Refused(err) {
		t.Errorf("it is %v", err)
	}
	methods := ""
	for _, request := range *asked {
		methods += request[:4]
	}
	if !strings.HasPrefix(methods, "GET PUT GET PUT ") {
		t.Errorf("it asks %q", *asked)
	}
}

// TestRefused tells what is refused again from what may work the next time.
func TestRefused(t *testing.T) {
	const cluster = base + "/clusters/east"
	for reason, test := range map[metav1.StatusReason]struct {
		code int
		want bool
	}{
		metav1.StatusReasonForbidden:             {http.StatusForbidden, true},
		metav1.StatusReasonInvalid:               {http.StatusUnprocessableEntity, true},
		metav1.StatusReasonBadRequest:            {http.StatusBadRequest, true},
		metav1.StatusReasonRequestEntityTooLarge: {http.StatusRequestEntityTooLarge, true},
		metav1.StatusReasonConflict:              {http.StatusConflict, false},
		metav1.StatusReasonTimeout:               {http.StatusGatewayTimeout, false},
		metav1.StatusReasonServiceUnavailable:    {http.StatusServiceUnavailable, false},
		metav1.StatusReasonInternalError:         {http.StatusInternalServerError, false},
		metav1.StatusReasonUnauthorized:          {http.StatusUnauthorized, false},
	} {
		client, _ := serve(t, answers{"GET " + cluster: {http.StatusOK, east}, "PUT " + cluster: refusal(test.code, reason)})
		if err := client.Rewrite(t.Context(), "v1beta1", "east"); err == nil || Refused(err) != test.want {
			t.Errorf("%s: %v is refused: %t", reason, err, Refused(err))
		}
	}
}
