package registryclient

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// reported is a registry whose clusters were reported of, each by some managers.
type reported struct {
	t *testing.T
	// names are the clusters in the order of the list, two a page.
	names    []string
	managers map[string][]string
	refuses  map[string]int
	patches  []string
	lists    int
}

func (r *reported) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name, isStatus := strings.CutSuffix(strings.TrimPrefix(request.URL.Path, base+"/clusters/"), "/status")
	if request.Method == http.MethodPatch && isStatus {
		r.patch(w, request, name)
		return
	}
	if request.Method != http.MethodGet || request.URL.Path != base+"/clusters" || !strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		r.t.Errorf("it asks %s %s", request.Method, request.URL)
	}
	r.lists++
	begin := 0
	if at := request.URL.Query().Get("continue"); at != "" {
		begin = slices.Index(r.names, at)
	}
	var items []string
	for _, name := range r.names[begin:min(begin+2, len(r.names))] {
		var fields []string
		for _, manager := range r.managers[name] {
			operation, subresource := "Apply", "status"
			if manager == "other" {
				operation, subresource = "Update", ""
			}
			fields = append(fields, fmt.Sprintf(`{"manager": %q, "operation": %q, "subresource": %q}`, manager, operation, subresource))
		}
		items = append(items, fmt.Sprintf(`{"metadata": {"name": %q, "uid": "uid-of-%s", "managedFields": [%s]}}`, name, name, strings.Join(fields, ", ")))
	}
	next := ""
	if begin+2 < len(r.names) {
		next = r.names[begin+2]
	}
	fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(items, ", "))
}

func (r *reported) patch(w http.ResponseWriter, request *http.Request, name string) {
	if code := r.refuses[name]; code != 0 {
		said := refusal(code, map[int]metav1.StatusReason{403: "Forbidden", 404: "NotFound", 409: "Conflict"}[code])
		w.WriteHeader(said.status)
		fmt.Fprint(w, said.body)
		return
	}
	manager := request.URL.Query().Get("fieldManager")
	r.patches = append(r.patches, manager+" of "+name)
	r.managers[name] = slices.DeleteFunc(r.managers[name], func(other string) bool { return other == manager })
	fmt.Fprint(w, east)
}

func (r *reported) client() *Client {
	server := httptest.NewServer(r)
	r.t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

func newReported(t *testing.T) *reported {
	return &reported{t: t, names: []string{"a", "b", "c", "d", "e"}, refuses: map[string]int{}, managers: map[string][]string{
		"a": {"health"}, "b": {"other"}, "c": {"agent", "health", "host"}, "e": {"health"},
	}}
}

// beginning takes back what the managers of the test have applied.
var beginning = Retraction{Managers: []string{"health", "host"}}

func never() bool { return false }

// TestRetract takes back what two managers have reported, and nothing else.
func TestRetract(t *testing.T) {
	r := newReported(t)
	client := r.client()
	at, err := client.Retract(t.Context(), beginning, never)
	if want := []string{"health of a", "health of c", "host of c", "health of e"}; err != nil || !at.Complete() || !slices.Equal(r.patches, want) || r.lists != 3 {
		t.Errorf("%v, %v: %v after %d lists", at, err, r.patches, r.lists)
	}
	if at, err = client.Retract(t.Context(), beginning, never); err != nil || !at.Complete() || len(r.patches) != 4 {
		t.Errorf("again: %v, %v, %v", at, err, r.patches)
	}
}

// TestRetractInSteps is over before each write but the first of each step, and gets through
// nevertheless, without a list of what it went through before.
func TestRetractInSteps(t *testing.T) {
	r := newReported(t)
	client, at := r.client(), beginning
	for steps := 0; !at.Complete(); steps++ {
		if steps > 10 {
			t.Fatal("it comes to no end")
		}
		var err error
		before := len(r.patches)
		if at, err = client.Retract(t.Context(), at, func() bool { return len(r.patches) > before }); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.patches) != 4 || r.lists > 7 {
		t.Errorf("%v after %d lists", r.patches, r.lists)
	}
}

// TestRetractRefused has a write refused, which holds up no other cluster and is tried again
// from the beginning; one of a cluster that is gone is none.
func TestRetractRefused(t *testing.T) {
	r := newReported(t)
	r.refuses["a"], r.refuses["c"], r.refuses["e"] = http.StatusForbidden, http.StatusNotFound, http.StatusConflict
	r.managers["d"] = []string{"health"}
	client := r.client()
	at, err := client.Retract(t.Context(), beginning, never)
	if err == nil || !strings.HasPrefix(err.Error(), "take back what health has reported of cluster a: ") || at.Complete() || at.next != "" || !slices.Equal(r.patches, []string{"health of d"}) {
		t.Errorf("%v, %v, %v", at, err, r.patches)
	}
	delete(r.refuses, "a")
	if at, err = client.Retract(t.Context(), at, never); err != nil || !at.Complete() || !slices.Contains(r.patches, "health of a") {
		t.Errorf("again: %v, %v, %v", at, err, r.patches)
	}
}

// TestRetractSlowRefusal is over after each write that is refused, as one that times out has
// it, and gets past it nevertheless.
func TestRetractSlowRefusal(t *testing.T) {
	r := newReported(t)
	r.refuses["a"] = http.StatusForbidden
	client, at := r.client(), beginning
	var err error
	for steps := 0; err == nil; steps++ {
		if steps > 10 {
			t.Fatalf("it comes to no end: %v", r.patches)
		}
		writes := 0
		at, err = client.Retract(t.Context(), at, func() bool { writes++; return writes > 1 })
	}
	if want := []string{"health of c", "host of c", "health of e"}; !slices.Equal(r.patches, want) || !strings.Contains(err.Error(), "of cluster a: ") {
		t.Errorf("%v, %v", err, r.patches)
	}
}

// TestRetractUnlisted begins again when the list can't be continued.
func TestRetractUnlisted(t *testing.T) {
	client, _ := serve(t, answers{"GET " + base + "/clusters": refusal(http.StatusGone, "Expired")})
	at, err := client.Retract(t.Context(), Retraction{Managers: beginning.Managers, next: "c", refused: errors.New("no")}, never)
	if err == nil || at.Complete() || at.next != "" || at.refused != nil {
		t.Errorf("%+v, %v", at, err)
	}
}
