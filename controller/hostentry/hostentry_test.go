package hostentry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	hostfake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

const id = "11111111-2222-4333-8444-555555555555"

// applying keeps what is applied to a status as it is: the fake has no schema to merge by.
type applying struct{ typed.ClusterInterface }

func (a applying) ApplyStatus(ctx context.Context, applied *apply.ClusterApplyConfiguration, _ metav1.ApplyOptions) (*v1beta1.Cluster, error) {
	stored, err := a.Get(ctx, *applied.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(applied.Status)
	if err != nil {
		return nil, err
	}
	stored.Status = &v1beta1.ClusterStatus{}
	if err := json.Unmarshal(content, stored.Status); err != nil {
		return nil, err
	}
	return a.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}

type bench struct {
	*Registrar
	host     *hostfake.Clientset
	registry *fake.Clientset
}

func newBench(entries []runtime.Object, host ...runtime.Object) *bench {
	b := &bench{
		host:     hostfake.NewSimpleClientset(append(host, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: id}})...),
		registry: fake.NewSimpleClientset(entries...),
	}
	b.host.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.37.1"}
	b.Registrar = New(Config{
		Name: "home", Host: b.host, Clusters: applying{b.registry.ClusterregistryV1beta1().Clusters()}, Period: time.Minute,
		Clock: testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Say:   func(contract.FunctionState, string) {},
	})
	b.verify = func(context.Context, *v1beta1.Endpoint, string) error { return nil }
	return b
}

func (b *bench) get(t *testing.T) *v1beta1.Cluster {
	t.Helper()
	c, err := b.Clusters.Get(t.Context(), "home", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writes counts what was written to the registry.
func (b *bench) writes() int {
	n := 0
	for _, action := range b.registry.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			n++
		}
	}
	return n
}

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), "example.com/gpu": resource.MustParse("1")}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Capacity: resources, Allocatable: resources, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func clusterInfo(server string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster: {server: \"" + server + "\", certificate-authority-data: Q0E=}\n"}}
}

func TestSync(t *testing.T) {
	b := newBench(nil, clusterInfo("https://api.example.com:6443"), node("a", corev1.ConditionTrue), node("b", corev1.ConditionFalse))
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := b.get(t)
	if c.Spec.ID != id || c.Spec.Manager == nil || c.Spec.Manager.Name != Manager || len(c.Spec.Endpoints) != 1 ||
		c.Spec.Endpoints[0].URL != "https://api.example.com:6443" || string(c.Spec.Endpoints[0].CABundle) != "CA" {
		t.Errorf("spec: %+v", c.Spec)
	}
	cpu, memory := c.Status.Capacity["cpu"], c.Status.Allocatable["memory"]
	if c.Status.Version.Kubernetes != "v1.37.1" || *c.Status.Nodes != (v1beta1.NodeCount{Total: 2, Ready: 1}) || cpu.String() != "4" || memory.String() != "8Gi" || len(c.Status.Capacity) != 2 {
		t.Errorf("status: %+v", c.Status)
	}
	if !isVerified(c.Status.Conditions) || len(c.Status.Reporters) != 1 || c.Status.Reporters[0].Name != Reporter {
		t.Errorf("status: %+v", c.Status)
	}
	if own := c.Spec.Endpoints[0]; !b.Own("home", own) || b.Own("other", own) || b.Own("home", v1beta1.Endpoint{Name: "host", URL: "https://10.96.0.1"}) {
		t.Error("not exactly the endpoint that was published is the host's own")
	}
	before := b.writes()
	for range 3 {
		if err := b.Sync(t.Context()); err != nil || b.writes() != before {
			t.Fatalf("a steady host: %d writes, %v", b.writes()-before, err)
		}
	}
	// What people add stays, and what they change of the address is set back.
	c.Spec.DisplayName = "Home"
	c.Spec.Endpoints[0].URL = "https://evil.example.com"
	c.Spec.Endpoints = append(c.Spec.Endpoints, v1beta1.Endpoint{Name: "vpn", URL: "https://vpn.example.com"})
	if _, err := b.Clusters.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c = b.get(t); c.Spec.DisplayName != "Home" || len(c.Spec.Endpoints) != 2 || c.Spec.Endpoints[0].URL != "https://api.example.com:6443" {
		t.Errorf("spec: %+v", c.Spec)
	}
}

func TestEndpoint(t *testing.T) {
	for _, test := range []struct {
		reason, url string
		host        []runtime.Object
		want, ca    string
	}{
		{"as given", "https://given", []runtime.Object{clusterInfo("https://info")}, "https://given", "given"},
		{"from cluster-info", "", []runtime.Object{clusterInfo("https://info")}, "https://info", "CA"},
		{"none", "", nil, "", ""},
		{"loopback", "", []runtime.Object{clusterInfo("https://127.0.0.1:6443")}, "", ""},
		{"no https", "", []runtime.Object{clusterInfo("http://info")}, "", ""},
	} {
		b := newBench(nil, test.host...)
		b.URL = test.url
		if test.url != "" {
			b.CABundle = []byte("given")
		}
		got, err := b.endpoint(t.Context())
		switch {
		case err != nil:
			t.Errorf("%s: %v", test.reason, err)
		case got == nil && test.want != "":
			t.Errorf("%s: none, want %s", test.reason, test.want)
		case got != nil && (got.URL != test.want || string(got.CABundle) != test.ca):
			t.Errorf("%s: %+v, want %s", test.reason, got, test.want)
		}
	}
}

// TestPages adds up the nodes of a large host cluster by pages, and asks for each page once.
func TestPages(t *testing.T) {
	b := newBench(nil)
	var asked []string
	b.host.PrependReactor("list", "nodes", func(action kubetesting.Action) (bool, runtime.Object, error) {
		options := action.(kubetesting.ListActionImpl).ListOptions
		asked = append(asked, fmt.Sprintf("%d from %q", options.Limit, options.Continue))
		page := &corev1.NodeList{Items: []corev1.Node{*node("a", corev1.ConditionTrue), *node("b", corev1.ConditionFalse)}}
		if len(asked) < 3 {
			page.Continue = fmt.Sprint("page", len(asked))
		}
		return true, page, nil
	})
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{`500 from ""`, `500 from "page1"`, `500 from "page2"`}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	status := b.get(t).Status
	if cpu := status.Capacity["cpu"]; status.Nodes.Total != 6 || status.Nodes.Ready != 3 || cpu.Value() != 12 {
		t.Errorf("%+v, %v", status.Nodes, status.Capacity)
	}
}

// TestForbidden has a host cluster that lets this program read almost nothing.
func TestForbidden(t *testing.T) {
	b := newBench(nil, clusterInfo("https://info"), node("a", corev1.ConditionTrue))
	for _, kind := range []string{"nodes", "configmaps"} {
		b.host.PrependReactor("*", kind, func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource(kind), "", errors.New("no"))
		})
	}
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := b.get(t); len(c.Spec.Endpoints) != 0 || c.Status.Nodes != nil || c.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("%+v, %+v", c.Spec, c.Status)
	}
}

// TestRefusals expects that no entry of others is touched, and that the message names it.
func TestRefusals(t *testing.T) {
	entry := func(name string, spec v1beta1.ClusterSpec) *v1beta1.Cluster {
		return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	ours := &v1beta1.Manager{Name: Manager}
	for _, test := range []struct {
		reason string
		entry  *v1beta1.Cluster
		says   []string
	}{
		{"someone's entry", entry("home", v1beta1.ClusterSpec{}), []string{`"home"`, id}},
		{"someone's entry of this cluster", entry("home", v1beta1.ClusterSpec{ID: id}), []string{`"home"`, `its manager ""`}},
		{"another manager's", entry("home", v1beta1.ClusterSpec{ID: id, Manager: &v1beta1.Manager{Name: "fleet"}}), []string{`"home"`, `its manager "fleet"`}},
		{"another host's", entry("home", v1beta1.ClusterSpec{ID: "another", Manager: ours}), []string{`"home"`, `"another"`}},
		{"the same cluster under another name", entry("old", v1beta1.ClusterSpec{ID: id, Manager: ours}), []string{`"home"`, `"old"`, id, "this controller has registered it", "kubectl delete clusters.clusterregistry.k8s.io old"}},
		{"a cluster that someone has joined", entry("joined", v1beta1.ClusterSpec{ID: id}), []string{`"home"`, `"joined"`, "not made by this controller", "kubectl delete clusters.clusterregistry.k8s.io joined"}},
	} {
		b := newBench([]runtime.Object{test.entry})
		err := b.Sync(t.Context())
		if refusal := (&Refusal{}); !errors.As(err, &refusal) || b.writes() != 0 {
			t.Errorf("%s: %v, %d writes", test.reason, err, b.writes())
			continue
		}
		for _, text := range test.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is missing in %q", test.reason, text, err)
			}
		}
		if b.Own("home", v1beta1.Endpoint{}) {
			t.Errorf("%s: an endpoint counts as the host's own", test.reason)
		}
	}
}
