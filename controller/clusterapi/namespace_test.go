package clusterapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/internal/contract"
)

// TestProblems says for each reason why Clusters are not read what to do about it.
func TestProblems(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("namespaces"), "a", errors.New("no"))
	for _, test := range []struct {
		reason  string
		arrange func(*bench)
		state   contract.FunctionState
		says    string
		barred  bool
	}{
		{"none", func(*bench) {}, contract.FunctionRunning, "", false},
		{"no label", func(b *bench) { b.relabel(nil) }, contract.FunctionRefused, "kubectl label namespace a registry.clusterregistry.io/hub=registries.", true},
		{"the label of another registry", func(b *bench) { b.relabel(map[string]string{"registry.clusterregistry.io/hub": "x"}) }, contract.FunctionRefused, "kubectl label namespace a", true},
		{"no right to the namespace", func(b *bench) {
			b.host.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		}, contract.FunctionRefused, "by a RoleBinding in that namespace", true},
		{"no answer", func(b *bench) {
			b.host.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
		}, contract.FunctionFailing, "away", false},
		{"no Cluster API", func(b *bench) { b.source.served = ServedNo }, contract.FunctionStarting, "clusterctl init", true},
		{"an old one", func(b *bench) { b.source.served = ServedOther }, contract.FunctionRefused, "upgrade it to v1.11", true},
		{"one that goes", func(b *bench) { b.source.served = ServedEnding }, contract.FunctionFailing, "is being deleted", true},
		{"no discovery", func(b *bench) { b.source.err = errors.New("away") }, contract.FunctionFailing, "away", false},
		{"no right to Clusters", func(b *bench) { b.watched(b.t.Context(), b.namespaces["a"], forbidden) }, contract.FunctionRefused, "may not be read: bind the role", false},
		{"Clusters can't be listed", func(b *bench) { b.watched(b.t.Context(), b.namespaces["a"], errors.New("garbled")) }, contract.FunctionFailing, "garbled", false},
		{"listed again", func(b *bench) {
			b.watched(b.t.Context(), b.namespaces["a"], errors.New("garbled"))
			b.watched(b.t.Context(), b.namespaces["a"], nil)
		}, contract.FunctionRunning, "", false},
		{"not listed yet", func(b *bench) { b.namespaces["a"].store = nil }, contract.FunctionStarting, "Waiting for the Clusters", false},
		{"the registry is away", func(b *bench) { b.Unwatched = func() error { return errors.New("gone") } }, contract.FunctionFailing, "gone", false},
	} {
		b := newBench(t, nil)
		test.arrange(b)
		n := b.namespaces["a"]
		n.trouble = b.look(t.Context(), n)
		if state, message := b.state(); state != test.state || !strings.Contains(message, test.says) || n.trouble.barred != test.barred {
			t.Errorf("%s: %s: %s (%+v)", test.reason, state, message, n.trouble)
		}
	}
}

// TestOwnNamespace needs no label: the registry is at home there.
func TestOwnNamespace(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Namespace = "a" })
	b.relabel(nil)
	if why := b.look(t.Context(), b.namespaces["a"]); why != (trouble{}) {
		t.Errorf("%+v", why)
	}
}

// TestUnservedTwice counts looks in a row only.
func TestUnservedTwice(t *testing.T) {
	b := newBench(t, nil)
	n := b.namespaces["a"]
	for i, test := range []struct {
		served Served
		twice  bool
	}{{ServedNo, false}, {ServedYes, false}, {ServedNo, false}, {ServedEnding, true}, {ServedNo, true}, {ServedYes, false}} {
		b.source.served = test.served
		b.look(t.Context(), n)
		if got := n.view().unserved; got != test.twice {
			t.Errorf("look %d: %v", i, got)
		}
	}
	b.source.served = ServedNo
	b.look(t.Context(), n)
	b.look(t.Context(), n)
	b.relabel(nil)
	if b.look(t.Context(), n); n.view().unserved {
		t.Error("the entries of a namespace that doesn't let it in are touched")
	}
}

// TestSummary names the first few, and counts the rest.
func TestSummary(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		b.hold(t.Context(), cluster(name), hold{reason: HeldNameTaken, message: "taken " + name})
	}
	b.failing[types.NamespacedName{Namespace: "a", Name: "z"}] = errors.New("away")
	state, message := b.state()
	if state != contract.FunctionFailing || message != "1 Clusters can't be brought into the registry: a/z: away. 5 Clusters held: a/a: taken a; a/b: taken b; a/c: taken c; and 2 more." {
		t.Errorf("%s: %s", state, message)
	}
}

// TestStubborn tells of an error after a few attempts, of a conflict after more, and of
// neither once it is over.
func TestStubborn(t *testing.T) {
	b := newBench(t, nil)
	key := types.NamespacedName{Namespace: "a", Name: "east"}
	for _, test := range []struct {
		err      error
		attempts int
	}{{errors.New("away"), persistent}, {apierrors.NewConflict(corev1.Resource("x"), "east", nil), stubborn}} {
		for i := range test.attempts {
			if len(b.failing) > 0 {
				t.Errorf("%v: told after %d attempts", test.err, i)
			}
			b.note(t.Context(), key, test.err)
		}
		if len(b.failing) != 1 {
			t.Errorf("%v: not told after %d attempts", test.err, test.attempts)
		}
		if b.note(t.Context(), key, nil); len(b.failing) > 0 || b.queue.NumRequeues(key) > 0 {
			t.Errorf("%v: still told", test.err)
		}
	}
}

// TestServed reads discovery as a host cluster answers.
func TestServed(t *testing.T) {
	const list = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cluster.x-k8s.io/v1beta2","resources":[{"name":"clusters","namespaced":true,"kind":"Cluster","verbs":[%s]}]}`
	for _, test := range []struct {
		reason        string
		version, all  string
		code, allCode int
		want          Served
		says          string
	}{
		{"served", strings.Replace(list, "%s", `"create","get"`, 1), "", 200, 0, ServedYes, ""},
		{"being deleted", strings.Replace(list, "%s", `"get","list","watch"`, 1), "", 200, 0, ServedEnding, ""},
		{"other kinds alone", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cluster.x-k8s.io/v1beta2","resources":[{"name":"machines"}]}`, "", 200, 0, ServedNo, ""},
		{"no group", "{}", "{}", 404, 404, ServedNo, ""},
		{"another version", "{}", `{"kind":"APIGroup","apiVersion":"v1","name":"cluster.x-k8s.io"}`, 404, 200, ServedOther, ""},
		{"no answer", "{}", "{}", 503, 404, "", "unable to handle"},
		{"no second answer", "{}", "{}", 404, 503, "", "unable to handle"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			code, body := test.code, test.version
			if r.URL.Path == "/apis/cluster.x-k8s.io" {
				code, body = test.allCode, test.all
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		source, err := NewSource(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		got, err := source.Served(t.Context())
		if got != test.want || (err == nil) != (test.says == "") {
			t.Errorf("%s: %q, %v", test.reason, got, err)
		}
		server.Close()
	}
}
