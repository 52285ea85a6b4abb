package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	_, _, config := independentOn(t, etcd, "--request-timeout=10s")
	clusters := clustersOf(t, config)
	anonymous, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, path string, want int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
		if err != nil {
			return err
		}
		response, err := anonymous.Do(request)
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
	framework.Eventually(t, "the server to be ready", func(ctx context.Context) error { return ask(ctx, "/readyz", http.StatusOK) })

	t.Log("no majority")
	etcd.Kill(2)
	framework.Eventually(t, "the server to be out of service", func(ctx context.Context) error { return ask(ctx, "/readyz", http.StatusInternalServerError) })
	if err := ask(t.Context(), "/livez?exclude=etcd", http.StatusOK); err != nil {
		t.Error(err)
	}
	if _, err := clusters.Create(t.Context(), cluster("no-majority", nil), metav1.CreateOptions{}); !apierrors.IsTimeout(err) {
		t.Errorf("a write without a majority: %v", err)
	}

	t.Log("all back")
	etcd.Start(1)
	etcd.Start(2)
	framework.Eventually(t, "the server to be back in service", func(ctx context.Context) error { return ask(ctx, "/readyz", http.StatusOK) })
	store("all-up")
	for _, name := range []string{"one-down", "another-down", "all-up"} {
		if _, err := clusters.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s, which was acknowledged: %v", name, err)
		}
	}
}
