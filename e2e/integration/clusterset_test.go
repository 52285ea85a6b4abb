package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// warned collects warnings.
type warned struct {
	lock sync.Mutex
	text []string
}

// HandleWarningHeaderWithContext collects one.
func (w *warned) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.text = append(w.text, text)
}

// take returns what was collected since the last time.
func (w *warned) take() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	out := strings.Join(w.text, "\n")
	w.text = nil
	return out
}

// sets is a client of clusters and their sets.
type sets struct {
	clustersv1beta1.ClusterregistryV1beta1Interface
	warned *warned
}

func setsOf(t *testing.T, config *rest.Config) sets {
	t.Helper()
	out := sets{warned: &warned{}}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = out.warned
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	out.ClusterregistryV1beta1Interface = clients.ClusterregistryV1beta1()
	return out
}

// make creates sets.
func (s sets) make(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := s.ClusterSets().Create(t.Context(), &v1beta1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// put creates a cluster in a set.
func (s sets) put(ctx context.Context, name, set string) (*v1beta1.Cluster, error) {
	return s.Clusters().Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{ClusterSet: set}}, metav1.CreateOptions{})
}

// move has a cluster change its set.
func (s sets) move(ctx context.Context, name, set string) (*v1beta1.Cluster, error) {
	return s.Clusters().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"clusterSet":"`+set+`"}}`), metav1.PatchOptions{})
}

// TestClusterSets groups clusters through two servers of one registry.
func TestClusterSets(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	var servers []sets
	var configs []*rest.Config
	for range 2 {
		_, _, config := independentOn(t, etcd)
		servers, configs = append(servers, setsOf(t, config)), append(configs, config)
	}
	t.Run("membership", func(t *testing.T) { testMembership(t, servers[0]) })
	t.Run("v1alpha1", func(t *testing.T) { testSetsInV1alpha1(t, servers[0], configs[1]) })
	t.Run("status", func(t *testing.T) { testSetStatus(t, servers) })
	t.Run("deletion", func(t *testing.T) { testSetDeletion(t, servers[1]) })
	t.Run("races", func(t *testing.T) { testSetRaces(t, servers) })
	noLocks(t, etcd)
}

// noLocks expects that no lock is left. It does not wait: one that is never given up expires
// after two minutes.
func noLocks(t *testing.T, etcd *framework.Etcd) {
	t.Helper()
	left, err := etcd.Client.Get(t.Context(), locks, clientv3.WithPrefix())
	if err != nil || left.Count != 0 {
		t.Errorf("locks are left: %v, %v", err, left)
	}
}

func testMembership(t *testing.T, s sets) {
	ctx := t.Context()
	s.make(t, "blue", "green")
	for reason, set := range map[string]string{"no such set": "missing", "no name": "Not.A.Name"} {
		if _, err := s.put(ctx, "east", set); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.clusterSet") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	made, err := s.put(ctx, "east", "blue")
	if err != nil || made.Labels[v1beta1.ClusterSetLabel] != "blue" {
		t.Fatalf("created: %v, labels %v", err, made.Labels)
	}
	if _, err := s.put(ctx, "west", ""); err != nil {
		t.Fatal(err)
	}
	if text := s.warned.take(); text != "" {
		t.Errorf("warned without a reason: %s", text)
	}
	for _, step := range []struct {
		reason, patch, set string
		warns              bool
	}{
		{"another value", `{"metadata":{"labels":{"clusterregistry.k8s.io/clusterset":"green"}}}`, "blue", true},
		{"no labels", `{"metadata":{"labels":null}}`, "blue", false},
		{"a move", `{"spec":{"clusterSet":"green"}}`, "green", false},
		{"out of it", `{"spec":{"clusterSet":null}}`, "", false},
		{"a label without a set", `{"metadata":{"labels":{"clusterregistry.k8s.io/clusterset":"green"}}}`, "", true},
		{"into it", `{"spec":{"clusterSet":"blue"}}`, "blue", false},
	} {
		got, err := s.Clusters().Patch(ctx, "east", types.MergePatchType, []byte(step.patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if got.Spec.ClusterSet != step.set || got.Labels[v1beta1.ClusterSetLabel] != step.set {
			t.Errorf("%s: in %q, labelled %v", step.reason, got.Spec.ClusterSet, got.Labels)
		}
		if text := s.warned.take(); strings.Contains(text, "the server keeps this label by spec.clusterSet") != step.warns {
			t.Errorf("%s: warned %q", step.reason, text)
		}
	}
	for _, options := range []metav1.ListOptions{{FieldSelector: "spec.clusterSet=blue"}, {LabelSelector: v1beta1.ClusterSetLabel + "=blue"}} {
		list, err := s.Clusters().List(ctx, options)
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != "east" {
			t.Errorf("selected by %v: %v, %v", options, err, list)
		}
	}
}

// testSetsInV1alpha1 shows the set as a label there, which no write through it changes.
func testSetsInV1alpha1(t *testing.T, s sets, config *rest.Config) {
	ctx := t.Context()
	clusters := clustersOf(t, config)
	got, err := clusters.Get(ctx, "east", metav1.GetOptions{})
	if err != nil || got.Labels[v1beta1.ClusterSetLabel] != "blue" {
		t.Fatalf("%v, labels %v", err, got.Labels)
	}
	got.Labels = map[string]string{v1beta1.ClusterSetLabel: "green", "mine": "too"}
	got.Spec.KubernetesAPIEndpoints.ServerEndpoints = []v1alpha1.ServerAddressByClientCIDR{{ServerAddress: "https://east.example"}}
	if got, err = clusters.Update(ctx, got, metav1.UpdateOptions{}); err != nil || got.Labels[v1beta1.ClusterSetLabel] != "blue" || got.Labels["mine"] != "too" {
		t.Errorf("%v, labels %v", err, got.Labels)
	}
	if shown, err := s.Clusters().Get(ctx, "east", metav1.GetOptions{}); err != nil || shown.Spec.ClusterSet != "blue" || len(shown.Spec.Endpoints) != 1 {
		t.Errorf("%v, %+v", err, shown.Spec)
	}
}

// testSetStatus counts clusters that are written through both servers.
func testSetStatus(t *testing.T, servers []sets) {
	ctx := t.Context()
	servers[0].make(t, "counted")
	for i, version := range []string{"v1.37.1", "v1.36.3", "v1.37.1"} {
		s, name := servers[i%2], fmt.Sprintf("counted-%d", i)
		made, err := s.put(ctx, name, "counted")
		if err != nil {
			t.Fatal(err)
		}
		available := metav1.ConditionTrue
		if i == 0 {
			available = metav1.ConditionFalse
		}
		made.Status = &v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: version},
			Conditions: []metav1.Condition{{Type: "Available", Status: available, Reason: "Test", LastTransitionTime: metav1.Now()}}}
		if _, err := s.Clusters().UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	counted := func(want v1beta1.ClusterSetStatus) func(context.Context) error {
		return func(ctx context.Context) error {
			set, err := servers[1].ClusterSets().Get(ctx, "counted", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := set.Status; got.Clusters != want.Clusters || got.Available != want.Available || !slices.Equal(got.Versions, want.Versions) {
				return fmt.Errorf("counted %+v, want %+v", got, want)
			}
			return nil
		}
	}
	framework.Eventually(t, "three clusters to be counted", counted(v1beta1.ClusterSetStatus{Clusters: 3, Available: 2, Versions: []v1beta1.ClusterSetVersion{{Kubernetes: "v1.37.1", Clusters: 2}, {Kubernetes: "v1.36.3", Clusters: 1}}}))
	// What a client says of it is not stored.
	// The servers count on, and one that is behind corrects itself.
	var set *v1beta1.ClusterSet
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if set, err = servers[0].ClusterSets().Get(ctx, "counted", metav1.GetOptions{}); err != nil {
			return err
		}
		set.Status.Clusters, set.Spec.DisplayName = 100, "Counted"
		set, err = servers[0].ClusterSets().Update(ctx, set, metav1.UpdateOptions{})
		return err
	}); err != nil || set.Status.Clusters > 3 || set.Generation != 2 {
		t.Errorf("%v, %+v", err, set)
	}
	if err := servers[1].Clusters().Delete(ctx, "counted-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := servers[0].move(ctx, "counted-1", ""); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "one cluster to be counted", counted(v1beta1.ClusterSetStatus{Clusters: 1, Available: 1, Versions: []v1beta1.ClusterSetVersion{{Kubernetes: "v1.37.1", Clusters: 1}}}))
	if _, err := servers[0].move(ctx, "counted-2", ""); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "no cluster to be counted", counted(v1beta1.ClusterSetStatus{}))
}

func testSetDeletion(t *testing.T, s sets) {
	ctx := t.Context()
	s.make(t, "full")
	for i := range 3 {
		if _, err := s.put(ctx, fmt.Sprintf("full-%d", i), "full"); err != nil {
			t.Fatal(err)
		}
	}
	for reason, do := range map[string]func() error{
		"delete": func() error { return s.ClusterSets().Delete(ctx, "full", metav1.DeleteOptions{}) },
		"in a dry run": func() error {
			return s.ClusterSets().Delete(ctx, "full", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"by collection": func() error {
			return s.ClusterSets().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=full"})
		},
	} {
		if err := do(); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "3 clusters are in it") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	// A finalizer keeps it after its deletion, and then nothing is put in it any more.
	if _, err := s.ClusterSets().Patch(ctx, "full", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/later"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.ClusterSets().Delete(ctx, "full", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("with a finalizer: %v", err)
	}
	for i := range 3 {
		if err := s.Clusters().Delete(ctx, fmt.Sprintf("full-%d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ClusterSets().Delete(ctx, "full", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.put(ctx, "late", "full"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "it is being deleted") {
		t.Errorf("into a set that is being deleted: %v", err)
	}
	if _, err := s.ClusterSets().Patch(ctx, "full", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ClusterSets().Get(ctx, "full", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its last finalizer: %v", err)
	}
}

// testSetRaces deletes sets while clusters are put in them, through both servers. No
// cluster is in a set that is gone, and none is lost that was said to be in one.
func testSetRaces(t *testing.T, servers []sets) {
	ctx := t.Context()
	const clients, rounds = 6, 15
	deleted := 0
	for round := 0; !raced(t, deleted, round, rounds); round++ {
		set := fmt.Sprintf("race-%d", round)
		servers[0].make(t, set)
		if _, err := servers[0].put(ctx, set+"-0", ""); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		told := make([]bool, clients)
		for i := range clients {
			s, name := servers[i%len(servers)], fmt.Sprintf("%s-%d", set, i)
			all.Go(func() {
				enter := s.put
				if i == 0 {
					enter = s.move
				}
				_, err := enter(ctx, name, set)
				if told[i] = err == nil; !told[i] && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
					t.Errorf("round %d, client %d: %v", round, i, err)
				}
			})
			if i == round%clients {
				all.Go(func() {
					if err := servers[round%2].ClusterSets().Delete(ctx, set, metav1.DeleteOptions{}); err != nil && !apierrors.IsConflict(err) {
						t.Errorf("round %d, deletion: %v", round, err)
					}
				})
			}
		}
		all.Wait()
		if gone := checkMembers(t, servers, set, told); gone {
			deleted++
		}
	}
}

// raced reports whether there were enough rounds of a race between clusters and the deletion
// of their set. One that always has the same winner proves nothing of the other case.
func raced(t *testing.T, deleted, rounds, enough int) bool {
	t.Helper()
	if rounds < enough || (deleted == 0 || deleted == rounds) && rounds < 20*enough {
		return false
	}
	t.Logf("%d of %d sets were deleted before a cluster came", deleted, rounds)
	if deleted == 0 || deleted == rounds {
		t.Error("that is no race")
	}
	return true
}

// checkMembers expects that just those clusters are in a set whose clients were told so,
// and that it exists if there are any. It reports whether it is gone.
func checkMembers(t *testing.T, servers []sets, set string, told []bool) bool {
	t.Helper()
	members, err := servers[0].Clusters().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.clusterSet=" + set})
	if err != nil {
		t.Fatal(err)
	}
	_, err = servers[1].ClusterSets().Get(t.Context(), set, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err != nil && len(members.Items) > 0 {
		t.Errorf("%d clusters are in %s, which is gone", len(members.Items), set)
	}
	for i, in := range told {
		name := fmt.Sprintf("%s-%d", set, i)
		if is := slices.ContainsFunc(members.Items, func(c v1beta1.Cluster) bool { return c.Name == name }); is != in {
			t.Errorf("%s is in the set: %t, and its client was told %t", name, is, in)
		}
	}
	return err != nil
}

// TestClusterSetsOfLostLocks takes every lock away as soon as it is taken, as its lease
// does from a server that stands still for long, while one client deletes a set and others
// put clusters in it.
func TestClusterSetsOfLostLocks(t *testing.T) {
	t.Parallel()
	var servers []sets
	for _, config := range thoseWhoLoseLocks(t) {
		servers = append(servers, setsOf(t, config))
	}
	deleted := 0
	for round := 0; !raced(t, deleted, round, 25); round++ {
		set := fmt.Sprintf("lost-%d", round)
		servers[0].make(t, set)
		if _, err := servers[0].put(t.Context(), set+"-0", ""); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		errs := make([]error, 3)
		// Each read gives the deletion the start of one way to etcd and back.
		later := func(s sets) {
			for range round % 4 {
				if _, err := s.Clusters().Get(t.Context(), set+"-0", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
		}
		all.Go(func() {
			later(servers[0])
			_, errs[0] = servers[0].move(t.Context(), set+"-0", set)
		})
		all.Go(func() {
			later(servers[1])
			_, errs[1] = servers[1].put(t.Context(), set+"-1", set)
		})
		all.Go(func() { errs[2] = servers[round%2].ClusterSets().Delete(t.Context(), set, metav1.DeleteOptions{}) })
		all.Wait()
		for i, err := range errs {
			if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
				t.Errorf("round %d, client %d: %v", round, i, err)
			}
		}
		if gone := checkMembers(t, servers, set, []bool{errs[0] == nil, errs[1] == nil}); gone {
			deleted++
		}
	}
}

// TestJoinClusterSets lets people put clusters in the sets that they may, and take them out of those,
// by the RBAC of both modes.
func TestJoinClusterSets(t *testing.T) {
	t.Parallel()
	t.Run("independent", func(t *testing.T) {
		registry, clients, admin := independent(t)
		testJoinSets(t, admin, func(user string) *rest.Config { return registry.Config(clients.Issue(user, nil)) })
	})
	t.Run("aggregated", func(t *testing.T) {
		host, _ := framework.StartAggregated(t, newest)
		framework.Create(t, framework.HostClient(t, host.Config), shippedRoles(t)...)
		testJoinSets(t, host.Config, func(user string) *rest.Config { return userConfig(t, host, user) })
	})
}

// testJoinSets has ann, who may edit clusters and join blue and green, try what she may.
func testJoinSets(t *testing.T, admin *rest.Config, as func(user string) *rest.Config) {
	ctx := t.Context()
	root := setsOf(t, admin)
	root.make(t, "blue", "green", "red")
	roles := clientset(t, admin).RbacV1()
	rule := rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clustersets/join"}, Verbs: []string{"create"}, ResourceNames: []string{"blue", "green"}}
	if _, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "joiner"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for binding, role := range map[string]string{"joiner": "joiner", "editor": "clusterregistry:editor"} {
		if _, err := roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ann := setsOf(t, as("ann"))
	framework.Eventually(t, "ann's roles", func(ctx context.Context) error {
		_, err := ann.put(ctx, "east", "blue")
		return err
	})
	for _, step := range []struct {
		reason string
		do     func() error
		denied string
	}{
		{"into a set that is not hers", func() error { _, err := ann.put(ctx, "west", "red"); return err }, `"red"`},
		{"into one that doesn't exist", func() error { _, err := ann.put(ctx, "west", "missing"); return err }, `"missing"`},
		{"in a dry run", func() error {
			_, err := ann.Clusters().Patch(ctx, "east", types.MergePatchType, []byte(`{"spec":{"clusterSet":"red"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}, `"red"`},
		{"by apply", func() error {
			_, err := ann.Clusters().Patch(ctx, "new", types.ApplyPatchType, []byte(`{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"new"},"spec":{"clusterSet":"red"}}`), metav1.PatchOptions{FieldManager: "test"})
			return err
		}, `"red"`},
		{"between hers", func() error { _, err := ann.move(ctx, "east", "green"); return err }, ""},
		{"a change that is no move", func() error {
			_, err := ann.Clusters().Patch(ctx, "east", types.MergePatchType, []byte(`{"spec":{"displayName":"East"}}`), metav1.PatchOptions{})
			return err
		}, ""},
		{"root moves it", func() error { _, err := root.move(ctx, "east", "red"); return err }, ""},
		{"out of one that is not hers", func() error { _, err := ann.move(ctx, "east", "blue"); return err }, `"red"`},
		{"out of it to none", func() error { _, err := ann.move(ctx, "east", ""); return err }, `"red"`},
		{"edit it where it is", func() error {
			_, err := ann.Clusters().Patch(ctx, "east", types.MergePatchType, []byte(`{"spec":{"displayName":"Far east"}}`), metav1.PatchOptions{})
			return err
		}, ""},
	} {
		err := step.do()
		switch {
		case step.denied == "" && err != nil:
			t.Errorf("%s: %v", step.reason, err)
		case step.denied != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "clustersets/join"`) || !strings.Contains(err.Error(), step.denied)):
			t.Errorf("%s: %v", step.reason, err)
		}
	}
}
