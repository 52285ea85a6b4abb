package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// install brings up a registry behind the cluster's real aggregator.
func install(t *testing.T) (*framework.Env, *versioned.Clientset) {
	t.Helper()
	e := framework.New(t)
	values := map[string]string{
		"Namespace": e.Namespace,
		"Server":    framework.FindImage(t, "clusterregistry-apiserver").Reference,
		"Etcd":      framework.FindImage(t, "etcd").Reference,
	}
	// A namespace's deletion looks again only after half the longest grace
	// period of a pod in it, so the servers go first.
	t.Cleanup(func() { stopServers(t, e) })
	e.Apply("aggregated.yaml", values)
	e.Eventually("the servers to be available", func(ctx context.Context) error { return rolledOut(ctx, e) })
	e.Apply("apiservice.yaml", values)
	clients, err := versioned.NewForConfig(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	e.Eventually("the host to serve clusters", func(ctx context.Context) error {
		_, err := clients.ClusterregistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
		return err
	})
	return e, clients
}

func stopServers(t *testing.T, e *framework.Env) {
	t.Helper()
	ctx := context.Background()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: e.Namespace}}
	if err := client.IgnoreNotFound(e.Client.Delete(ctx, deployment)); err != nil {
		t.Error(err)
		return
	}
	framework.EventuallyAfter(t, "the servers' pods to be gone", func(ctx context.Context) error {
		if pods := podUIDs(ctx, t, e); len(pods) > 0 {
			return fmt.Errorf("%d are left", len(pods))
		}
		return nil
	})
}

// rolledOut returns why the newest pods don't all serve, or nil.
func rolledOut(ctx context.Context, e *framework.Env) error {
	var d appsv1.Deployment
	if err := e.Get(ctx, "registry", &d); err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < *d.Spec.Replicas || s.AvailableReplicas < *d.Spec.Replicas || s.Replicas > s.UpdatedReplicas {
		return fmt.Errorf("its status is %+v", s)
	}
	return nil
}

// TestAggregated uses a registry in a real cluster with kubectl, and restarts
// its servers while clients write.
func TestAggregated(t *testing.T) {
	e, clients := install(t)
	t.Run("kubectl", func(t *testing.T) {
		kubectl := framework.NewKubectl(t, "v1.37.1", filepath.Join(framework.Root(t), ".cluster", "kubeconfig"))
		kubectl.Stdin("apiVersion: clusterregistry.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {kubernetesApiEndpoints: {serverEndpoints: [{serverAddress: east.example}]}}\n").Run("apply", "-f", "-")
		if out := kubectl.Run("get", "crc"); !strings.Contains(out, "east.example") {
			t.Errorf("get crc: %s", out)
		}
	})
	t.Run("rolling restarts", func(t *testing.T) {
		load := startLoad(t, e.Config)
		for range 2 {
			restart(t, e)
		}
		written, failed := load.stop()
		if len(failed) > 0 {
			t.Errorf("%d of %d writes failed, the first: %s", len(failed), len(failed)+len(written), failed[0])
		}
		list, err := clients.ClusterregistryV1alpha1().Clusters().List(t.Context(), metav1.ListOptions{LabelSelector: "load=yes"})
		if err != nil {
			t.Fatal(err)
		}
		stored := map[string]bool{}
		for _, c := range list.Items {
			stored[c.Name] = true
		}
		for _, name := range written {
			if !stored[name] {
				t.Errorf("the acknowledged cluster %s is lost", name)
			}
		}
		t.Logf("%d writes during two rolling restarts, none failed, none lost", len(written))
	})
}

// restart replaces every pod of the server, as kubectl rollout restart does, and
// waits until the old ones are gone: they serve on for a while first.
func restart(t *testing.T, e *framework.Env) {
	t.Helper()
	old := podUIDs(t.Context(), t, e)
	var d appsv1.Deployment
	if err := e.Get(t.Context(), "registry", &d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Annotations = map[string]string{"restarted": time.Now().Format(time.RFC3339Nano)}
	if err := e.Client.Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the servers to be replaced", func(ctx context.Context) error {
		if err := rolledOut(ctx, e); err != nil {
			return err
		}
		for uid, name := range podUIDs(ctx, t, e) {
			if _, is := old[uid]; is {
				return fmt.Errorf("pod %s is still there", name)
			}
		}
		return nil
	})
}

// podUIDs returns the server's pods.
func podUIDs(ctx context.Context, t *testing.T, e *framework.Env) map[types.UID]string {
	t.Helper()
	pods, err := e.Kubernetes.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=registry"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[types.UID]string{}
	for _, pod := range pods.Items {
		out[pod.UID] = pod.Name
	}
	return out
}

// load creates clusters without rest, over plain HTTP without any retry.
type load struct {
	cancel  context.CancelFunc
	group   sync.WaitGroup
	mu      sync.Mutex
	written []string
	failed  []string
}

// writers bounds the load; each pauses between its writes, for the machines
// are small and the point is continuity, not pressure.
const (
	writers = 4
	pause   = 20 * time.Millisecond
)

func startLoad(t *testing.T, config *rest.Config) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	var next atomic.Int64
	for range writers {
		// A dialer of its own, or all would share one cached connection.
		own := rest.CopyConfig(config)
		own.Dial = (&net.Dialer{}).DialContext
		transport, err := rest.TransportFor(own)
		if err != nil {
			t.Fatal(err)
		}
		httpClient := &http.Client{Transport: transport}
		l.group.Go(func() {
			for ctx.Err() == nil {
				name := fmt.Sprintf("load-%d", next.Add(1))
				err := post(httpClient, config.Host, name)
				l.mu.Lock()
				if err != nil {
					l.failed = append(l.failed, err.Error())
				} else {
					l.written = append(l.written, name)
				}
				l.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	return l
}

func (l *load) stop() (written, failed []string) {
	l.cancel()
	l.group.Wait()
	return l.written, l.failed
}

// post creates one cluster. It runs to its end even when the load is stopped.
func post(httpClient *http.Client, host, name string) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster",
		"metadata": map[string]any{"name": name, "labels": map[string]string{"load": "yes"}},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, host+"/apis/clusterregistry.k8s.io/v1alpha1/clusters", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("status %s: %s", response.Status, answer)
	}
	return nil
}
