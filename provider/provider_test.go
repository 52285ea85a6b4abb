package provider

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
)

// apiServer answers as a cluster that has namespaces. The test may refuse, delay or count
// requests before.
type apiServer struct {
	*httptest.Server
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func startServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := s.before.Load(); before != nil && (*before)(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{
			"/version":           map[string]string{"gitVersion": "v1.36.0"},
			"/api":               metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
			"/apis":              metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
			"/api/v1":            metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace", Verbs: []string{"list", "watch", "get"}}}},
			"/api/v1/namespaces": corev1.NamespaceList{TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}},
		}[r.URL.Path]
		switch {
		case answer == nil:
			http.Error(w, "{}", http.StatusNotFound)
		case r.URL.Query().Get("sendInitialEvents") != "":
			http.Error(w, "{}", http.StatusUnprocessableEntity) // as servers that don't know it
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

// do has a server do something before it answers; true means that it has answered.
func (s *apiServer) do(before func(http.ResponseWriter, *http.Request) bool) { s.before.Store(&before) }

// hang has a server never answer requests for a path.
func (s *apiServer) hang(path string) {
	s.do(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path {
			return false
		}
		<-r.Context().Done()
		return true
	})
}

// at returns the entry of a cluster whose API server is s.
func (s *apiServer) at(name string) *v1beta1.Cluster {
	return entry(name, func(c *v1beta1.Cluster) {
		c.Spec.Endpoints[0] = v1beta1.Endpoint{Name: "main", URL: s.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
	})
}

// controllers stand for those of a manager: they watch namespaces.
type controllers struct{ engagements chan engagement }

type engagement struct {
	ctx     context.Context
	name    multicluster.ClusterName
	cluster cluster.Cluster
}

// Engage does what a controller of multicluster-runtime does, which holds a lock for that.
func (c *controllers) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	if _, err := cl.GetCache().GetInformer(ctx, &corev1.Namespace{}); err != nil {
		return err
	}
	if !cl.GetCache().WaitForCacheSync(ctx) {
		return errors.New("not synced")
	}
	c.engagements <- engagement{ctx, name, cl}
	return nil
}

type fleet struct {
	*Provider
	t           *testing.T
	registry    *fake.Clientset
	engagements chan engagement
}

// start starts a provider over a registry with the given clusters.
func start(t *testing.T, timeout time.Duration, entries ...*v1beta1.Cluster) *fleet {
	t.Helper()
	o := optionsProbed(t, nil)
	o.Timeout = timeout
	return startWith(t, o, entries...)
}

// optionsProbed are options of a provider that asks whether clusters are probed.
func optionsProbed(t *testing.T, probed func(context.Context) (time.Time, error)) Options {
	t.Helper()
	return Options{loopback: true, Registry: fake.NewSimpleClientset(), Timeout: 5 * time.Second, Probed: probed, Plugins: []Plugin{{Name: "fleet", Authorize: func(_ context.Context, config *rest.Config, _ *v1beta1.Cluster, access *v1beta1.Access) error {
		config.BearerToken = "of " + access.Provider.Config["path"]
		return nil
	}}}}
}

// startWith is start with options.
func startWith(t *testing.T, o Options, entries ...*v1beta1.Cluster) *fleet {
	t.Helper()
	f := &fleet{t: t, registry: o.Registry.(*fake.Clientset), engagements: make(chan engagement, 100)}
	var err error
	if f.Provider, err = New(o); err != nil {
		t.Fatal(err)
	}
	for _, c := range entries {
		f.write(c)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx, &controllers{f.engagements}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the provider ended with %v", err)
		}
		if names := f.ClusterNames(); len(names) > 0 {
			t.Errorf("still engaged after the end: %v", names)
		}
	})
	return f
}

// write creates or updates a cluster.
func (f *fleet) write(c *v1beta1.Cluster) {
	f.t.Helper()
	clusters := f.registry.ClusterregistryV1beta1().Clusters()
	if _, err := clusters.Create(f.t.Context(), c, metav1.CreateOptions{}); err == nil {
		return
	}
	if _, err := clusters.Update(f.t.Context(), c, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// next returns the next engagement, of the given cluster.
func (f *fleet) next(name string) engagement {
	f.t.Helper()
	select {
	case e := <-f.engagements:
		if e.name.String() != name {
			f.t.Fatalf("%s was engaged, not %s", e.name, name)
		}
		return e
	case <-time.After(20 * time.Second):
		_, err := f.Get(f.t.Context(), multicluster.ClusterName(name))
		f.t.Fatalf("%s is not engaged: %v", name, err)
	}
	return engagement{}
}

// refused waits until a cluster is not engaged, for a reason.
func (f *fleet) refused(name, reason string) {
	f.t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(f.t.Context(), 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		_, last = f.Get(ctx, multicluster.ClusterName(name))
		return errors.Is(last, multicluster.ErrClusterNotFound) && strings.Contains(last.Error(), reason) && !slices.Contains(f.ClusterNames(), multicluster.ClusterName(name)), nil
	}); err != nil {
		f.t.Fatalf("%s: got %v, want a refusal because of %q", name, last, reason)
	}
}

func (f *fleet) done(e engagement) {
	f.t.Helper()
	select {
	case <-e.ctx.Done():
	case <-time.After(20 * time.Second):
		f.t.Fatalf("%s is still engaged", e.name)
	}
}

func TestLifeOfACluster(t *testing.T) {
	east := startServer(t)
	f := start(t, 5*time.Second, entry("west", func(c *v1beta1.Cluster) { c.Status = nil }), east.at("east"))
	first := f.next("east")
	if got, err := f.Get(t.Context(), "east"); err != nil || got != first.cluster {
		t.Fatalf("got %v, %v", got, err)
	}
	var namespace corev1.Namespace
	if err := first.cluster.GetClient().Get(t.Context(), client.ObjectKey{Name: "default"}, &namespace); err != nil {
		t.Fatal(err)
	}
	f.refused("west", "no condition Available yet")
	f.refused("north", "no such cluster")

	t.Run("it stays while it is reported as down", func(t *testing.T) {
		down := east.at("east")
		says(v1beta1.ConditionAvailable, metav1.ConditionFalse, 2)(down)
		f.write(down)
		// West has an event after that, and is refused for it: so east's was seen.
		f.write(entry("west", says(v1beta1.ConditionAvailable, metav1.ConditionUnknown, 2)))
		f.refused("west", "Available is Unknown")
		if got, err := f.Get(t.Context(), "east"); err != nil || got != first.cluster || first.ctx.Err() != nil {
			t.Fatalf("got %v, %v", got, err)
		}
	})
	t.Run("another address is another engagement", func(t *testing.T) {
		moved := startServer(t)
		before := first
		for range 20 { // what the former one leaves behind must not end this one
			f.write(moved.at("east"))
			f.done(before)
			second := f.next("east")
			f.write(east.at("east"))
			f.done(second)
			before = f.next("east")
		}
		if got, err := f.Get(t.Context(), "east"); err != nil || got != before.cluster || before.ctx.Err() != nil {
			t.Fatalf("got %v, %v", got, err)
		}
		first = before
	})
	t.Run("another cluster answers", func(t *testing.T) {
		other := east.at("east")
		says(v1beta1.ConditionIdentityVerified, metav1.ConditionFalse, 2)(other)
		f.write(other)
		f.done(first)
		f.refused("east", "IdentityVerified is False")
		f.write(east.at("east"))
		first = f.next("east")
	})
	t.Run("its entry is deleted", func(t *testing.T) {
		if err := f.registry.ClusterregistryV1beta1().Clusters().Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.done(first)
		f.refused("east", "no such cluster")
	})
}

// TestDeadClusters has clusters that never answer, each at another step. Others are engaged
// meanwhile, and those once they answer.
func TestDeadClusters(t *testing.T) {
	silent, unlistable, well := startServer(t), startServer(t), startServer(t)
	silent.hang("/version")
	f := start(t, 2*time.Second, silent.at("silent"))
	f.write(well.at("well"))
	e := f.next("well") // and controllers watch namespaces from now on
	if _, err := f.Get(t.Context(), "silent"); !errors.Is(err, multicluster.ErrClusterNotFound) {
		t.Fatalf("silent: %v", err)
	}
	unlistable.hang("/api/v1/namespaces")
	f.write(unlistable.at("unlistable"))
	f.refused("unlistable", "waiting for cache to sync")
	f.refused("silent", "ask "+silent.URL+" for its version")
	if e.ctx.Err() != nil || !slices.Equal(f.ClusterNames(), []multicluster.ClusterName{"well"}) {
		t.Fatalf("engaged are %v", f.ClusterNames())
	}
	silent.do(func(http.ResponseWriter, *http.Request) bool { return false })
	f.next("silent")
	unlistable.do(func(http.ResponseWriter, *http.Request) bool { return false })
	f.next("unlistable")
}

// TestNotWaitingInALock engages the first cluster of all, of which namespaces can't be
// listed: controllers hold a lock meanwhile. A read is bounded.
func TestNotWaitingInALock(t *testing.T) {
	unlistable, well := startServer(t), startServer(t)
	unlistable.hang("/api/v1/namespaces")
	f := start(t, 5*time.Second, unlistable.at("unlistable"))
	e := f.next("unlistable")
	f.write(well.at("well"))
	f.next("well")
	if err := e.cluster.GetClient().List(t.Context(), &corev1.NamespaceList{}); err == nil {
		t.Fatal("namespaces were listed")
	}
}

// TestUntoldKinds has the first cluster of all not tell which kinds it has: controllers wait
// for that in their lock once, and then never again.
func TestUntoldKinds(t *testing.T) {
	untold, well := startServer(t), startServer(t)
	untold.hang("/api/v1")
	f := start(t, 2*time.Second, untold.at("untold"))
	f.refused("untold", "watch *v1.Namespace")
	f.write(well.at("well"))
	f.next("well")
	untold.do(func(http.ResponseWriter, *http.Request) bool { return false })
	f.next("untold")
}

// TestCredentials expects that a cluster that refuses credentials is not engaged, nor asked
// at each event of it.
func TestCredentials(t *testing.T) {
	east := startServer(t)
	var asked atomic.Int32
	var tokens atomic.Value
	east.do(func(w http.ResponseWriter, r *http.Request) bool {
		tokens.Store(r.Header.Get("Authorization"))
		asked.Add(1)
		http.Error(w, "{}", http.StatusUnauthorized)
		return true
	})
	f := start(t, 5*time.Second, east.at("east"))
	f.refused("east", "provide credentials")
	if got := tokens.Load(); got != "Bearer of fleet/east" {
		t.Errorf("it was shown %v", got)
	}
	for i := range 50 {
		f.write(entry("east", func(c *v1beta1.Cluster) { *c = *east.at("east"); says("Beat", metav1.ConditionTrue, int64(i))(c) }))
	}
	east.do(func(_ http.ResponseWriter, _ *http.Request) bool { asked.Add(1000); return false })
	f.next("east")
	if before := asked.Load() % 1000; before > 5 {
		t.Errorf("it was asked %d times within a second", before)
	}
}

// TestRedirects has an API server redirect to another server without TLS, which must not get
// the credentials.
func TestRedirects(t *testing.T) {
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stolen.Add(1)
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.0"}`))
	}))
	defer thief.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := startServer(t)
		server.do(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, thief.URL+r.URL.Path, code)
			return true
		})
		f := start(t, 10*time.Second, server.at("east"))
		f.refused("east", "redirects are not followed")
	}
	if n := stolen.Load(); n > 0 {
		t.Errorf("%d requests were redirected", n)
	}
}

// TestDialedAddresses expects that a name that leads to loopback is refused when it is dialed,
// for the endpoint and for a proxy, and that the policy of the program counts.
func TestDialedAddresses(t *testing.T) {
	for _, test := range []struct {
		reason, dialed, says string
		policy               address.Policy
	}{
		{reason: "loopback", dialed: "127.0.0.1:6443", says: "a loopback address"},
		{reason: "loopback, in another form", dialed: "[::ffff:127.0.0.1]:6443", says: "a loopback address"},
		{reason: "link-local", dialed: "169.254.7.7:6443", says: "a link-local address"},
		{reason: "metadata", dialed: "169.254.169.254:80", says: "the metadata service"},
		{reason: "the program's own cluster", dialed: "192.0.2.7:6443", says: "the host cluster's Services or pods", policy: address.Policy{HostCIDRs: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }}},
	} {
		for _, proxy := range []string{"", "http://proxy.example.com:3128"} {
			o := options(t, Plugin{Name: "fleet", Exec: caller})
			o.Addresses = test.policy
			found, err := o.target(entry("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = proxy }))
			if err != nil {
				t.Fatal(err)
			}
			config, err := found.config(t.Context(), &o)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := config.Dial(t.Context(), "tcp", test.dialed)
			if err == nil {
				_ = conn.Close()
			}
			var refusal *address.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, proxy %q: %v, want %q", test.reason, proxy, err, test.says)
			}
		}
	}
}

// TestStartedOnce expects an error, not two loops.
func TestStartedOnce(t *testing.T) {
	f := start(t, 5*time.Second)
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		f.lock.Lock()
		defer f.lock.Unlock()
		return f.started, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "started before") {
		t.Fatal(err)
	}
}
