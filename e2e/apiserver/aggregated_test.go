package apiserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/session"
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
	return framework.RolledOut(&d)
}

// TestAggregated uses a registry in a real cluster with kubectl, restarts its
// servers and moves its etcd's leader while clients write.
func TestAggregated(t *testing.T) {
	e, clients := install(t)
	t.Run("kubectl", func(t *testing.T) { session.Run(t, framework.ClusterKubeconfig(t)) })
	t.Run("garbage collection", func(t *testing.T) { testCollection(t, e, clients) })
	t.Run("restarts and leader moves", func(t *testing.T) {
		rounds := 2
		if framework.Full() {
			rounds = 10
		}
		load := framework.StartLoad(t, e.Config, rate)
		for range rounds {
			restart(t, e, func() { moveLeader(t, e) })
			load.Settle(t)
		}
		report := load.Stop()
		t.Logf("%d restarts of the servers and as many moves of etcd's leader: %s", rounds, report)
		check(t, clients, report)
	})
}

// check fails the test when a request of a load failed, or when what is stored
// differs from what was acknowledged.
func check(t *testing.T, clients *versioned.Clientset, report framework.Report) {
	t.Helper()
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	list, err := clients.ClusterregistryV1alpha1().Clusters().List(t.Context(), metav1.ListOptions{LabelSelector: "load=yes"})
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Compare(list.Items); err != nil {
		t.Error(err)
	}
}

// rate is how many requests clients send in a second while the servers restart.
const rate = 200

// restart replaces every pod of the server, as kubectl rollout restart does, and
// waits until the old ones are gone: they serve on for a while first. meanwhile
// is called when the first of them was told to stop.
func restart(t *testing.T, e *framework.Env, meanwhile func()) {
	t.Helper()
	old := podUIDs(t.Context(), t, e)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: e.Namespace}}
	again := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"restarted":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if err := e.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, again)); err != nil {
		t.Fatal(err)
	}
	e.Eventually("a server to be told to stop", func(ctx context.Context) error {
		for _, name := range podUIDs(ctx, t, e) {
			var pod corev1.Pod
			if err := e.Get(ctx, name, &pod); client.IgnoreNotFound(err) != nil {
				return err
			}
			if pod.DeletionTimestamp != nil {
				return nil
			}
		}
		return errors.New("none is")
	})
	meanwhile()
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
