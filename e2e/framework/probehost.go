package framework

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// probeTimeout is how long the host may take for one answer.
const probeTimeout = 30 * time.Second

// probing is the probe of this test binary, which runs while e2e tests do.
var probing struct {
	sync.Mutex
	probe *hostProbe
}

// probeHost has the host cluster probed until the test ends.
func (e *Env) probeHost() {
	e.t.Helper()
	probing.Lock()
	defer probing.Unlock()
	if probing.probe == nil {
		host, err := newProbedHost(e.Config)
		if err != nil {
			e.t.Fatal(err)
		}
		probing.probe = startProbe(host)
	}
	probe := probing.probe
	probe.join(e.t)
	e.t.Cleanup(func() {
		if run.waits {
			probe.pause(e.t) // Main ends it
			return
		}
		probing.Lock()
		defer probing.Unlock()
		if probe.leave(e.t) {
			probing.probe = nil
			e.t.Log(probe)
		}
	})
}

// endProbe stops the probe if there is one, and returns an error when the host has suffered
// between tests.
func endProbe() error {
	probing.Lock()
	defer probing.Unlock()
	if probing.probe == nil {
		return nil
	}
	unheard := probing.probe.end()
	fmt.Println(probing.probe)
	probing.probe = nil
	if len(unheard) > 0 {
		return fmt.Errorf("between tests, the host cluster suffered: %s", strings.Join(unheard, "; "))
	}
	return nil
}

// HostMaySuffer says that from now on, until the test or subtest ends or the
// returned function is called, namespaces of the host may stay and API groups may
// not answer, for a reason that the test is about. Without it that fails the test.
// What was seen is logged.
func (e *Env) HostMaySuffer(reason string) (end func()) {
	e.t.Helper()
	probing.Lock()
	probe := probing.probe
	probing.Unlock()
	over := probe.excuse(reason)
	end = sync.OnceFunc(func() { e.t.Log(over()) })
	e.t.Cleanup(end)
	return end
}

// probedHost is a real host cluster.
type probedHost struct {
	client    kubernetes.Interface
	discovery *discovery.DiscoveryClient
}

func newProbedHost(config *rest.Config) (*probedHost, error) {
	config = rest.CopyConfig(config)
	config.Timeout = probeTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &probedHost{client, asks}, nil
}

func (h *probedHost) createNamespace(ctx context.Context) (string, error) {
	made, err := h.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-host-probe-", Labels: map[string]string{labelProcess: thisProcess()}}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.Name, nil
}

func (h *probedHost) deleteNamespace(ctx context.Context, name string) error {
	if err := h.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func (h *probedHost) namespaceGone(ctx context.Context, name string) (bool, string, error) {
	left, err := h.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, "", nil
	}
	if err != nil {
		return false, "", err
	}
	return false, blockers(left.Status.Conditions), nil
}

// discover asks for everything at once, which kube-apiserver answers from its
// memory, and then every API group by itself, as older clients do.
func (h *probedHost) discover(ctx context.Context) error {
	if _, _, err := h.discovery.ServerGroupsAndResourcesWithContext(ctx); err != nil {
		return fmt.Errorf("aggregated discovery: %w", err)
	}
	if _, _, err := h.discovery.WithLegacyWithContext(ctx).ServerGroupsAndResourcesWithContext(ctx); err != nil {
		return fmt.Errorf("discovery group by group: %w", err)
	}
	return nil
}
