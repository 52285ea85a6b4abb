package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestEtcdOutage takes members of the registry's etcd away and brings them
// back. The server must go on while there is a majority; without one it must be
// taken out of service, yet not be restarted; and then it must come back by
// itself.
func TestEtcdOutage(t *testing.T) {
	t.Parallel() // it waits for time-outs most of the time
	etcd := framework.StartEtcd(t, 3)
	// The first endpoint is dead from the start.
	etcd.Kill(0)
	_, clients, config := independentOn(t, etcd)
	clusters := clustersOf(t, config)
	ready := func(want int) func(context.Context) error {
		return func(ctx context.Context) error { return answers(ctx, t, config, "/readyz", want) }
	}
	store := func(name string) {
		t.Helper()
		if _, err := clusters.Create(t.Context(), cluster(name, nil), metav1.CreateOptions{}); err != nil {
			t.Errorf("create %s: %v", name, err)
		}
	}

	t.Log("two of three members, the first endpoint dead")
	store("one-down")

	t.Log("another two of three")
	etcd.Start(0)
	framework.Eventually(t, "the first member to be back", func(ctx context.Context) error {
		_, err := etcd.Client.Status(ctx, etcd.Endpoints[0])
		return err
	})
	etcd.Kill(1)
	framework.Eventually(t, "etcd to have a leader", func(ctx context.Context) error {
		_, err := etcd.Client.Get(ctx, "any")
		return err
	})
	store("another-down")
	framework.Eventually(t, "the server to be ready", ready(http.StatusOK))

	t.Log("no majority")
	etcd.Kill(2)
	framework.Eventually(t, "the server to be out of service", ready(http.StatusInternalServerError))
	withoutEtcd(t, config)
	// A server that starts now answers, since a member answers it. In this mode, it waits for roles
	// besides.
	fresh := framework.StartRegistry(t, append([]string{"--mode=independent", "--client-ca-file=" + clients.File}, etcd.Flags()...)...)
	framework.Eventually(t, "a new server to be ready but for its roles", func(ctx context.Context) error {
		return answers(ctx, t, fresh.Config(framework.Pair{}), backendPath+"&exclude=roles", http.StatusOK)
	})

	t.Log("all back")
	etcd.Start(1)
	etcd.Start(2)
	framework.Eventually(t, "the server to be back in service", ready(http.StatusOK))
	store("all-up")
	for _, name := range []string{"one-down", "another-down", "all-up"} {
		if _, err := clusters.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s, which was acknowledged: %v", name, err)
		}
	}
}

// withoutEtcd expects of a server whose etcd has no majority what needs none: it lives, and is
// a backend for discovery and for what the watch cache has, however long that lasts. Other
// requests are refused.
func withoutEtcd(t *testing.T, config *rest.Config) {
	for _, path := range []string{"/livez?exclude=etcd", backendPath} {
		if err := answers(t.Context(), t, config, path, http.StatusOK); err != nil {
			t.Error(err)
		}
	}
	client, err := rest.HTTPClientFor(config) // client-go's others ask again by themselves
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context, method, path, body string, code int) error {
		request, err := http.NewRequestWithContext(ctx, method, config.Host+"/apis/clusterregistry.k8s.io/"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if again := response.Header.Get("Retry-After"); response.StatusCode != code || (again == "") != (code == http.StatusOK) {
			err = fmt.Errorf("%s %s: status %d, Retry-After %q", method, path, response.StatusCode, again)
		}
		return err
	}
	framework.Eventually(t, "a read to be refused, with the time to ask again", func(ctx context.Context) error {
		return send(ctx, http.MethodGet, "v1alpha1/clusters/one-down", "", http.StatusServiceUnavailable)
	})
	all := func() {
		t.Helper()
		for _, err := range []error{
			send(t.Context(), http.MethodPost, "v1alpha1/clusters", `{"metadata":{"name":"no-majority"}}`, http.StatusServiceUnavailable),
			send(t.Context(), http.MethodGet, "v1alpha1/clusters", "", http.StatusServiceUnavailable),
			send(t.Context(), http.MethodGet, "v1alpha1/clusters?limit=1", "", http.StatusServiceUnavailable),
			send(t.Context(), http.MethodGet, "v1alpha1/clusters?resourceVersion=0", "", http.StatusOK),
			send(t.Context(), http.MethodGet, "v1alpha1/clusters/one-down?resourceVersion=0", "", http.StatusOK),
			send(t.Context(), http.MethodGet, "v1beta1", "", http.StatusOK),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	// A watch cache that is left to itself is given up half a minute after its watch has ended.
	for start := time.Now(); time.Since(start) < lasts && !t.Failed(); {
		all()
	}
}

// lasts is for how long etcd stays without a majority after requests are refused.
const lasts = 25 * time.Second

// answers returns nil when a server answers a stranger with a status.
func answers(ctx context.Context, t *testing.T, config *rest.Config, path string, want int) error {
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s: status %d, want %d: %s", path, response.StatusCode, want, body)
	}
	return err
}

// backendPath is the probe by which a server counts as a backend of the host's APIService.
const backendPath = "/readyz?exclude=etcd&exclude=etcd-readiness"
