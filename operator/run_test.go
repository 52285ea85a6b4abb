package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// TestRunWithoutHost starts the operator while the host cluster does not answer: it is healthy,
// and waits. One that ended would be started again by kubelet after a pause that doubles up to
// five minutes, and so long the host cluster would be back without an operator.
func TestRunWithoutHost(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a}], clusters: [{name: a, cluster: {server: 'https://" + unused(t) + "'}}]}"
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	o := newOptions()
	o.leaderElect, o.metricsAddress, o.probeAddress, o.environment.Namespace = true, "0", unused(t), "clusterregistry-system"
	o.resyncPeriod, o.environment.ImageDigests = time.Second, "Never"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx) }()
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("the operator has ended: %w", err)
		default:
			return healthy(ctx, o.probeAddress), nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestConnect has a pod whose environment names a proxy ask its own cluster without it.
func TestConnect(t *testing.T) {
	named := func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: "proxy.example"}, nil }
	for reason, test := range map[string]struct {
		config rest.Config
		inPod  bool
		want   string
	}{
		"a pod":                           {rest.Config{}, true, "none"},
		"a kubeconfig":                    {rest.Config{}, false, "that of the environment"},
		"a kubeconfig that names a proxy": {rest.Config{Proxy: named}, false, "http://proxy.example"},
	} {
		got := "that of the environment"
		if proxy := connect(&test.config, test.inPod).Proxy; proxy != nil {
			at, err := proxy(&http.Request{})
			if err != nil {
				t.Fatal(err)
			}
			got = "none"
			if at != nil {
				got = at.String()
			}
		}
		if got != test.want {
			t.Errorf("%s: the proxy is %s, want %s", reason, got, test.want)
		}
	}
}

// healthy reports whether kubelet would find it so.
func healthy(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// unused returns an address of this computer where nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // it is only to be known
	return listener.Addr().String()
}
