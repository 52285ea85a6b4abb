package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// rate is how many requests clients send in a second: few enough that a computer of two
// processors answers all of them beside what an upgrade takes, and four times as many where
// the test is to prove something by repetition.
var rate = map[bool]int{false: 50, true: 200}[framework.Full()]

const (
	// watchers is how many clients watch meanwhile.
	watchers = 4
	// population is how many clusters there are about at a time.
	population = 200
	// pending is for how many seconds requests may be under way. Without a limit a machine
	// that is busy for a moment would be given more than it could ever make up for.
	pending = 2
)

// load returns what clients do beside reading and writing.
func load() []framework.LoadOption {
	return []framework.LoadOption{framework.Watchers(watchers), framework.Population(population), framework.Pending(pending * rate), framework.Rewritten()}
}

// steps are the releases in the order of their upgrades.
func steps(t *testing.T) []version.Release {
	t.Helper()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	if len(releases) < 2 {
		t.Fatalf("there are only %d releases to go between", len(releases))
	}
	return releases
}

// install installs a sample, at the first release unless change says another.
func install(t *testing.T, e *framework.Env, sample string, change func(*operatorv1alpha1.ClusterRegistrySpec)) *operatorv1alpha1.ClusterRegistry {
	t.Helper()
	registry := create(t, e, sample, change)
	e.WaitReady(registry)
	return registry
}

// create creates a sample, of the first release, and waits for nothing.
func create(t *testing.T, e *framework.Env, sample string, change func(*operatorv1alpha1.ClusterRegistrySpec)) *operatorv1alpha1.ClusterRegistry {
	t.Helper()
	registry := e.Sample(sample)
	registry.Spec.Version = operatorv1alpha1.Version(steps(t)[0].Version)
	if change != nil {
		change(&registry.Spec)
	}
	e.Install(registry)
	return registry
}

// upgrade bumps the one field and waits until that is done.
func upgrade(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, to string) {
	t.Helper()
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Version = operatorv1alpha1.Version(to) })
	e.WaitReady(registry)
	last := registry.Status.History[0]
	if registry.Status.Version != to || registry.Status.Operation != nil || last.Version != to || last.State != operatorv1alpha1.TransitionCompleted {
		t.Fatalf("it is ready with %s, upgrade %+v, history %+v", registry.Status.Version, registry.Status.Operation, last)
	}
}

// TestUpgrade brings a highly available registry from the first release to the
// last, one field at a time, while its clients create, change, read, list, watch
// and delete. No request fails, no write is lost, no watch misses an event.
func TestUpgrade(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := install(t, e, "aggregated-ha.yaml", nil)
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate, load()...)
	clients.Mark("before")
	settle(t, clients, 10)
	since := availableSince(t, registry)
	for _, release := range steps(t)[1:] {
		clients.Mark("to " + release.Version)
		upgrade(t, e, registry, release.Version)
		if now := availableSince(t, registry); !now.Equal(&since) {
			t.Errorf("in the upgrade to %s, Available was not always True: it has been since %s, and was since %s before", release.Version, now, since)
		}
		checkUpgraded(t, e, registry, release)
		checkStored(t, e, registry, release)
		last := registry.Status.History[0]
		t.Logf("to %s: %s from the beginning of the upgrade to its end", release.Version, last.CompletionTime.Sub(last.StartTime.Time))
		clients.Mark("after " + release.Version)
		settle(t, clients, 5)
	}
	finish(t, e, registry, clients)
	checkOldClients(t, e, registry)
}

// availableSince returns since when clients have been served without a break: the
// condition keeps that time as long as its status stays the same.
func availableSince(t *testing.T, registry *operatorv1alpha1.ClusterRegistry) metav1.Time {
	t.Helper()
	condition := meta.FindStatusCondition(registry.Status.Conditions, operatorv1alpha1.ConditionAvailable)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		t.Fatalf("it is ready, and Available is %+v", condition)
	}
	return condition.LastTransitionTime
}

// settle lets a load run for some seconds' worth of requests.
func settle(t *testing.T, clients *framework.Load, seconds int) {
	t.Helper()
	for range seconds {
		clients.Settle(t)
	}
}

// checkUpgraded compares a registry that says it is upgraded with what runs, and
// with what it told on the way.
func checkUpgraded(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, release version.Release) {
	t.Helper()
	checkEtcdUpgraded(t, registry, release)
	if last := registry.Status.History[0]; last.CompletionTime == nil {
		t.Errorf("the history tells of no end: %+v", last)
	}
	checkOffered(t, e, registry, release)
	for _, phase := range phases(registry) {
		checkEvent(t, e, registry, string(phase), "-> "+release.Version)
	}
	checkEvent(t, e, registry, string(operatorv1alpha1.TransitionCompleted), "to "+release.Version+" completed")
}

// checkOffered waits until clients are offered the versions of the API that a release serves, and
// no others. kube-apiserver's discovery follows a moment after what it routes to servers.
func checkOffered(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, release version.Release) {
	t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(release.Serves))
	e.Eventually(fmt.Sprintf("clients to be offered %v", want), func(context.Context) error {
		resources, err := clients.Discovery().ServerGroups()
		if err != nil {
			return err
		}
		var served []string
		for _, group := range resources.Groups {
			for _, v := range group.Versions {
				if group.Name == "clusterregistry.k8s.io" {
					served = append(served, v.Version)
				}
			}
		}
		slices.Sort(served)
		if !slices.Equal(served, want) {
			return fmt.Errorf("they are offered %v", served)
		}
		return nil
	})
}

// checkStored looks into etcd: every cluster is stored in the release's version.
func checkStored(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, release version.Release) {
	t.Helper()
	out := etcdctl(e, registry, "get", "--prefix", "/registry/clusterregistry.k8s.io/clusters/", "--limit=100", "--write-out=json")
	var answer struct {
		KVs []struct{ Key, Value []byte }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.KVs) == 0 {
		t.Fatalf("etcd holds %d clusters: %v", len(answer.KVs), err)
	}
	for _, kv := range answer.KVs {
		if begin := kv.Value[:min(64, len(kv.Value))]; !bytes.HasPrefix(begin, []byte("k8s\x00")) || !bytes.Contains(begin, []byte("clusterregistry.k8s.io/"+release.Stores)) {
			t.Errorf("%s is stored as %q", kv.Key, begin)
		}
	}
}

// checkEvent expects an event of a registry with a reason and a text.
func checkEvent(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, reason, text string) {
	t.Helper()
	e.Eventually(fmt.Sprintf("an event %s with %q", reason, text), func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := e.Client.List(ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		var notes []string
		for _, event := range list.Items {
			if event.Regarding.Kind == "ClusterRegistry" && event.Regarding.Name == registry.Name && event.Reason == reason {
				if strings.Contains(event.Note, text) {
					return nil
				}
				notes = append(notes, event.Note)
			}
		}
		return fmt.Errorf("those with that reason say %q", notes)
	})
}

// checkOldClients uses the client that was generated for the first release.
func checkOldClients(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("%d clusters, %v", len(list.Items), err)
	}
	cluster := &list.Items[0]
	cluster.Labels = map[string]string{"after": "all"}
	if cluster, err = clusters.Update(t.Context(), cluster, metav1.UpdateOptions{}); err != nil || cluster.Labels["after"] != "all" {
		t.Errorf("updated: %+v, %v", cluster, err)
	}
	if err := clusters.Delete(t.Context(), cluster.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
