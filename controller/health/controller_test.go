package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/informers"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

// bench is a controller with a registry in this process.
type bench struct {
	*Controller
	t      testing.TB
	client *fake.Clientset
	clock  *testingclock.FakeClock
	writes atomic.Int64

	mu      sync.Mutex
	results map[string]probe.Result
	said    []contract.FunctionState
	trouble time.Time
	// unwatched is why clusters can't be watched.
	unwatched error
}

func newBench(t testing.TB, clusters ...*v1beta1.Cluster) *bench {
	t.Helper()
	b := &bench{t: t, clock: testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), results: map[string]probe.Result{}}
	objects := make([]runtime.Object, len(clusters))
	for i := range clusters {
		objects[i] = clusters[i]
	}
	b.client = newClientset(t, objects...)
	b.client.PrependReactor("patch", "clusters", func(kubetesting.Action) (bool, runtime.Object, error) {
		b.writes.Add(1)
		return false, nil, nil
	})
	factory := informers.NewSharedInformerFactory(b.client, 0)
	var err error
	b.Controller, err = New(Config{
		Clusters:  b.client.ClusterregistryV1beta1().Clusters(),
		Informer:  factory.Clusterregistry().V1beta1().Clusters(),
		Probe:     b.probe,
		Trouble:   func() time.Time { return b.trouble },
		Unwatched: func() error { return b.unwatched },
		Say:       func(state contract.FunctionState, _ string) { b.said = append(b.said, state) },
		Period:    time.Minute, Concurrency: 4, Clock: b.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), b.Informer.Informer().HasSynced) {
		t.Fatal("the informer does not sync")
	}
	eventually(t, "all clusters to be known", func() bool {
		b.Controller.mu.Lock()
		defer b.Controller.mu.Unlock()
		return len(b.states) == len(clusters)
	})
	return b
}

func (b *bench) probe(_ context.Context, target probe.Target) probe.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	if result, ok := b.results[target.Endpoint.URL]; ok {
		return result
	}
	return ready
}

// answer sets what a cluster answers from now on.
func (b *bench) answer(result probe.Result, names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.results["https://"+name] = result
	}
}

// check checks clusters once, and waits until the informer has what was written.
func (b *bench) check(names ...string) {
	b.t.Helper()
	b.clock.Step(time.Minute)
	for _, name := range names {
		b.Check(b.t.Context(), name)
	}
	b.settle(names...)
}

func (b *bench) settle(names ...string) {
	b.t.Helper()
	for _, name := range names {
		stored := b.get(name)
		eventually(b.t, "the informer to have "+name, func() bool {
			have, err := b.lister.Get(name)
			if err != nil {
				return false
			}
			return fmt.Sprint(have.Status) == fmt.Sprint(stored.Status) && fmt.Sprint(have.Spec) == fmt.Sprint(stored.Spec)
		})
	}
}

func (b *bench) get(name string) *v1beta1.Cluster {
	b.t.Helper()
	c, err := b.client.ClusterregistryV1beta1().Clusters().Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func entry(name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "e", URL: "https://" + name}}},
	}
}

func entries(n int) ([]*v1beta1.Cluster, []string) {
	var clusters []*v1beta1.Cluster
	var names []string
	for i := range n {
		clusters = append(clusters, entry(fmt.Sprint("c", i)))
		names = append(names, clusters[i].Name)
	}
	return clusters, names
}

// shown returns the condition that a cluster has.
func (b *bench) shown(name, kind string) string {
	return brief(meta.FindStatusCondition(statusOf(b.get(name)).Conditions, kind))
}

func TestController(t *testing.T) {
	b := newBench(t, entry("east"))
	start := b.clock.Now()
	b.check("east")
	c := b.get("east")
	own := ownEntry(*c.Status)
	if b.shown("east", Available) != "True Available" || c.Status.Version.Kubernetes != "v1.37.1" || c.Status.ObservedGeneration != 1 ||
		own == nil || own.LastSeen == nil || !own.LastSeen.Time.Equal(start.Add(time.Minute)) || len(own.Conditions) != 2 {
		t.Fatalf("%+v", c.Status)
	}
	// A steady cluster costs nothing, not even for the last sign of life.
	for range 10 {
		b.check("east")
	}
	if n := b.writes.Load(); n != 1 {
		t.Errorf("%d writes of a steady cluster", n)
	}
	b.answer(down, "east")
	for range 2 {
		b.check("east")
	}
	if n := b.writes.Load(); n != 1 || b.shown("east", Available) != "True Available" {
		t.Errorf("%d writes after two failures, %s", n, b.shown("east", Available))
	}
	b.check("east")
	c = b.get("east")
	if since := meta.FindStatusCondition(c.Status.Conditions, Reachable).LastTransitionTime; b.shown("east", Reachable) != "False ConnectionRefused" || !since.Time.Equal(b.clock.Now()) ||
		!ownEntry(*c.Status).LastSeen.Time.Equal(start.Add(11*time.Minute)) || c.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("after three failures: %+v", c.Status)
	}
	since := b.clock.Now()
	b.answer(slow, "east")
	for range 3 {
		b.check("east")
	}
	if c := meta.FindStatusCondition(b.get("east").Status.Conditions, Reachable); c.Reason != probe.ReasonTimedOut || !c.LastTransitionTime.Time.Equal(since) {
		t.Errorf("another reason: %+v", c)
	}
	b.answer(ready, "east")
	for range 2 {
		b.check("east")
	}
	if b.shown("east", Available) != "True Available" || b.writes.Load() != 4 {
		t.Errorf("%s, %d writes", b.shown("east", Available), b.writes.Load())
	}
}

// TestIsolation fails most of a fleet at once.
func TestIsolation(t *testing.T) {
	clusters, names := entries(10)
	b := newBench(t, clusters...)
	b.check(names...)
	b.answer(down, names[:6]...)
	for range 5 {
		b.check(names...)
	}
	for _, name := range names {
		if b.shown(name, Available) != "True Available" {
			t.Errorf("%s: %s", name, b.shown(name, Available))
		}
	}
	if b.writes.Load() != 10 || !slices.Equal(b.said, []contract.FunctionState{contract.FunctionIsolated}) {
		t.Errorf("%d writes, said %q", b.writes.Load(), b.said)
	}
	b.answer(ready, names[0])
	b.check(names...) // 5 of 10 are not more than half
	for range 3 {
		b.check(names...)
	}
	if !slices.Equal(b.said, []contract.FunctionState{contract.FunctionIsolated, contract.FunctionRunning}) || b.shown(names[1], Available) != "False ConnectionRefused" || b.shown(names[0], Available) != "True Available" {
		t.Errorf("said %q, %s, %s", b.said, b.shown(names[1], Available), b.shown(names[0], Available))
	}
}

// TestMostGone fails most of a fleet for good.
func TestMostGone(t *testing.T) {
	for _, test := range []struct {
		gone int
		want string
	}{{6, "False ConnectionRefused"}, {8, "Unknown MostUnreachable"}, {10, "Unknown MostUnreachable"}} {
		clusters, names := entries(10)
		b := newBench(t, clusters...)
		b.check(names...)
		b.answer(down, names[:test.gone]...)
		for range doubt - 1 {
			b.check(names...)
		}
		if got := b.shown(names[0], Available); got != "True Available" {
			t.Errorf("%d gone for a short time: %s", test.gone, got)
		}
		for range 20 {
			b.check(names...)
		}
		if got := b.shown(names[0], Available); got != test.want || b.writes.Load() > int64(10+test.gone) {
			t.Errorf("%d gone: %s, %d writes", test.gone, got, b.writes.Load())
		}
		b.answer(ready, names...)
		b.check(names...)
		b.check(names...)
		if got := b.shown(names[0], Available); got != "True Available" || !slices.Equal(b.said, []contract.FunctionState{contract.FunctionIsolated, contract.FunctionRunning}) {
			t.Errorf("%d back: %s, said %q", test.gone, got, b.said)
		}
	}
}

// TestSilence has the time in which a cluster does not answer begin with a probe that failed, and
// end with one that did not, also when nothing was asked.
func TestSilence(t *testing.T) {
	b := newBench(t, entry("east"))
	for _, test := range []struct {
		result probe.Result
		silent bool
	}{{ready, false}, {down, true}, {slow, true}, {refused, false}, {down, true}, {notReady, false}} {
		b.answer(test.result, "east")
		b.check("east")
		if silent := b.states["east"].silent; silent.IsZero() == test.silent {
			t.Errorf("after %s: silent since %v", test.result.Reason, silent)
		}
	}
}

// TestEntriesOfOthersFeignNoOutage has many more entries that were never reached, and
// that are down for good, than others: one of the others still turns False.
func TestEntriesOfOthersFeignNoOutage(t *testing.T) {
	clusters, names := entries(30)
	for _, gone := range clusters[20:] {
		gone.Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: Reporter, Conditions: []metav1.Condition{
			{Type: Reachable, Status: metav1.ConditionFalse}, {Type: ControlPlaneHealthy, Status: metav1.ConditionUnknown},
		}}}}
	}
	b := newBench(t, clusters...)
	b.answer(down, names[5:]...)
	b.check(names...)
	b.answer(down, names[0])
	for range 3 {
		b.check(names...)
	}
	if got := b.shown(names[0], Available); got != "False ConnectionRefused" || len(b.said) != 0 {
		t.Errorf("%s, said %q", got, b.said)
	}
	b.answer(down, names[1:4]...)
	b.check(names...)
	if !slices.Equal(b.said, []contract.FunctionState{contract.FunctionIsolated}) { // the entries of others hide no outage either
		t.Errorf("said %q", b.said)
	}
	for _, gone := range names[1:4] {
		if err := b.client.ClusterregistryV1beta1().Clusters().Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the outage to end with the entries", func() bool {
		b.Controller.mu.Lock()
		defer b.Controller.mu.Unlock()
		return len(b.said) == 2
	})
}

// TestForgets expects that what was seen of a cluster says nothing of another under its
// name, or at another endpoint.
func TestForgets(t *testing.T) {
	b := newBench(t, entry("east"))
	clusters := b.client.ClusterregistryV1beta1().Clusters()
	b.answer(down, "east")
	b.check("east")
	b.check("east")
	if err := clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := entry("east")
	again.UID = "another"
	if _, err := clusters.Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	known := func() (types.UID, string, int) {
		b.Controller.mu.Lock()
		defer b.Controller.mu.Unlock()
		s := b.states["east"]
		if s == nil {
			return "", "", 0
		}
		return s.uid, s.endpoint.URL, s.history.probes
	}
	eventually(t, "the new cluster to be known", func() bool { uid, _, _ := known(); return uid == "another" })
	b.check("east")
	if b.writes.Load() != 0 {
		t.Error("failures of the deleted cluster count for the new one")
	}
	b.check("east")
	again.Spec.Endpoints[0].URL = "https://west"
	again.Generation = 2
	if _, err := clusters.Update(t.Context(), again, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.answer(down, "west")
	b.settle("east")
	b.check("east")
	if _, url, probes := known(); url != "https://west" || probes != 1 || b.writes.Load() != 0 {
		t.Errorf("failures at the old endpoint count for the new one: %s, %d probes, %d writes", url, probes, b.writes.Load())
	}
	if err := clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster to be forgotten", func() bool { uid, _, _ := known(); return uid == "" })
	if !b.Check(t.Context(), "east") || b.outage.all != (sums{}) || b.outage.recent != (sums{}) || b.unreached != 0 {
		t.Errorf("%+v, %d unreached of none", b.outage, b.unreached)
	}
}

// TestStaleResult changes the endpoint while it is being asked.
func TestStaleResult(t *testing.T) {
	b := newBench(t, entry("east"))
	b.Probe = func(context.Context, probe.Target) probe.Result {
		changed := b.get("east")
		changed.Spec.Endpoints[0].URL = "https://west"
		if _, err := b.client.ClusterregistryV1beta1().Clusters().Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.settle("east")
		return ready
	}
	b.check("east")
	if b.writes.Load() != 0 {
		t.Error("the answer of the old endpoint was reported of the new one")
	}
}

// TestHeartbeat has a cluster that only an agent can report of.
func TestHeartbeat(t *testing.T) {
	east := entry("east")
	east.Spec.Heartbeat = &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 1}
	b := newBench(t, east)
	b.answer(refused, "east")
	beat := func() {
		t.Helper()
		c := b.get("east")
		if c.Status == nil {
			c.Status = &v1beta1.ClusterStatus{}
		}
		at := metav1.NewTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)) // the agent's clock may be wrong
		if i := len(c.Status.Reporters) - 1; i >= 0 && c.Status.Reporters[i].LastSeen != nil {
			at = metav1.NewTime(c.Status.Reporters[i].LastSeen.Add(time.Second))
			c.Status.Reporters[i].LastSeen = &at
		} else {
			c.Status.Reporters = append(c.Status.Reporters, v1beta1.Reporter{Name: "agent", LastSeen: &at, Conditions: []metav1.Condition{{Type: Available, Status: metav1.ConditionTrue, Reason: "Up"}}})
		}
		if _, err := b.client.ClusterregistryV1beta1().Clusters().UpdateStatus(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the sign of life to be seen", func() bool {
			b.Controller.mu.Lock()
			defer b.Controller.mu.Unlock()
			return b.states["east"].sign.Equal(b.clock.Now())
		})
	}
	b.check("east") // a start is a grace period
	b.check("east")
	if got := b.shown("east", Available); got != "Unknown AddressRefused" {
		t.Errorf("in the grace period: %s", got)
	}
	b.check("east")
	if got := b.shown("east", Available); got != "Unknown HeartbeatMissed" {
		t.Errorf("after the grace period: %s", got)
	}
	beat()
	b.check("east")
	if got := b.shown("east", Available); got != "True Reported" {
		t.Errorf("with a sign of life: %s", got)
	}
	b.clock.Step(time.Hour)
	b.trouble = b.clock.Now() // the registry could not be asked all the while
	b.check("east")
	if got := b.shown("east", Available); got != "True Reported" {
		t.Errorf("after an outage of the registry: %s", got)
	}
	b.clock.Step(time.Hour)
	b.check("east")
	if got := b.shown("east", Available); got != "Unknown HeartbeatMissed" {
		t.Errorf("after a real silence: %s", got)
	}
}

// contested has another reporter write before each of the first writes.
type contested struct {
	typed.ClusterInterface
	t         *testing.T
	conflicts int
	moves     bool // to another endpoint, with the status as it is
}

func (c *contested) ApplyStatus(ctx context.Context, cluster *apply.ClusterApplyConfiguration, options metav1.ApplyOptions) (*v1beta1.Cluster, error) {
	if c.conflicts == 0 {
		return c.ClusterInterface.ApplyStatus(ctx, cluster, options)
	}
	c.conflicts--
	stored, err := c.Get(ctx, *cluster.Name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if c.moves {
		stored.Spec.Endpoints[0].URL = "https://elsewhere"
		stored.Generation++
		if _, err := c.Update(ctx, stored, metav1.UpdateOptions{}); err != nil {
			c.t.Fatal(err)
		}
		return nil, apierrors.NewConflict(v1beta1.Resource("clusters"), *cluster.Name, errors.New("it was changed"))
	}
	stored.Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: "agent", Conditions: []metav1.Condition{{Type: IdentityVerified, Status: metav1.ConditionFalse}}}}}
	if _, err := c.UpdateStatus(ctx, stored, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return nil, apierrors.NewConflict(v1beta1.Resource("clusters"), *cluster.Name, errors.New("it was changed"))
}

// TestConflict has another reporter write between a read and a write.
func TestConflict(t *testing.T) {
	b := newBench(t, entry("east"))
	contest := &contested{ClusterInterface: b.Clusters, t: t, conflicts: 2}
	b.Clusters = contest
	b.check("east")
	status := statusOf(b.get("east"))
	if got := brief(meta.FindStatusCondition(status.Conditions, Available)); got != "False IdentityMismatch" || contest.conflicts != 0 {
		t.Errorf("%s: what the other wrote was not taken into account", got)
	}
	if len(status.Reporters) != 2 {
		t.Errorf("reporters: %v", status.Reporters)
	}
	contest.conflicts = attempts
	b.answer(withheld, "east")
	if _, err := b.publish(t.Context(), b.get("east"), b.get("east").Spec.Endpoints[0]); err != nil {
		t.Errorf("nothing has changed, and %v", err)
	}
	b.check("east") // all attempts fail, and the next check begins again
	b.check("east")
	if got := brief(meta.FindStatusCondition(b.get("east").Status.Conditions, ControlPlaneHealthy)); got != "Unknown AnonymousRefused" {
		t.Error(got)
	}
}

// TestConflictWithNewEndpoint has the endpoint change between a read and a write.
func TestConflictWithNewEndpoint(t *testing.T) {
	b := newBench(t, entry("east"))
	b.check("east")
	contest := &contested{ClusterInterface: b.Clusters, t: t, conflicts: 1, moves: true}
	b.Clusters = contest
	b.answer(withheld, "east")
	b.check("east")
	if c := b.get("east"); contest.conflicts != 0 || b.writes.Load() != 1 || c.Status.ObservedGeneration != 1 || c.Generation != 2 {
		t.Errorf("what the old endpoint answered was reported of the new one: %d writes, %+v", b.writes.Load(), c.Status)
	}
}

// TestCarriedVerdict expects what was observed of the old endpoint to stay reported as
// such until there is a verdict of the new one.
func TestCarriedVerdict(t *testing.T) {
	b := newBench(t, entry("east"))
	b.check("east")
	c := b.get("east")
	c.Spec.Endpoints[0].URL = "https://elsewhere"
	c.Generation = 2
	if _, err := b.client.ClusterregistryV1beta1().Clusters().Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.settle("east")
	b.answer(down, "elsewhere")
	observed := func(want int64) {
		t.Helper()
		status := b.get("east").Status
		conditions := append(slices.Clone(status.Conditions), ownEntry(*status).Conditions...)
		for _, c := range conditions {
			if c.ObservedGeneration != want {
				t.Errorf("%s is observed of %d, want %d", c.Type, c.ObservedGeneration, want)
			}
		}
		if status.ObservedGeneration != want {
			t.Errorf("the status is observed of %d, want %d", status.ObservedGeneration, want)
		}
	}
	for range 2 {
		b.check("east")
		if observed(1); b.shown("east", Available) != "True Available" || b.writes.Load() != 1 {
			t.Errorf("%s, %d writes", b.shown("east", Available), b.writes.Load())
		}
	}
	b.check("east")
	if observed(2); b.shown("east", Available) != "False ConnectionRefused" {
		t.Error(b.shown("east", Available))
	}
}

// TestWithheldVersion leaves the version to others where the API server tells none, and
// keeps it while the server can't be asked.
func TestWithheldVersion(t *testing.T) {
	b := newBench(t, entry("east"))
	version := func() string { return b.get("east").Status.Version.Kubernetes }
	b.check("east")
	b.answer(down, "east")
	for range 3 {
		b.check("east")
	}
	if version() != "v1.37.1" {
		t.Errorf("%q while it can't be asked", version())
	}
	b.answer(withheld, "east")
	for range 2 {
		b.check("east")
	}
	if version() != "" {
		t.Errorf("%q is still reported", version())
	}
}

// TestIdentityOfOthers leaves the condition alone that another has set.
func TestIdentityOfOthers(t *testing.T) {
	b := newBench(t, entry("east"))
	b.check("east")
	if got := b.shown("east", IdentityVerified); got != "Unknown NotVerified" {
		t.Errorf("before: %s", got)
	}
	verified := metav1ac.Condition().WithType(IdentityVerified).WithStatus(metav1.ConditionTrue).WithReason("Compared").WithMessage("").WithLastTransitionTime(metav1.Now())
	if _, err := b.client.ClusterregistryV1beta1().Clusters().ApplyStatus(t.Context(), apply.Cluster("east").WithStatus(apply.ClusterStatus().WithConditions(verified)), metav1.ApplyOptions{FieldManager: "join", Force: true}); err != nil {
		t.Fatal(err)
	}
	b.settle("east")
	b.answer(withheld, "east")
	b.check("east")
	if got := b.shown("east", IdentityVerified); got != "True Compared" {
		t.Errorf("after: %s", got)
	}
}

// TestIdentityOfOldEndpoint takes back what another has verified at an endpoint that was
// changed since, also after a restart, until it is verified again.
func TestIdentityOfOldEndpoint(t *testing.T) {
	b := newBench(t, entry("east"))
	clusters := b.client.ClusterregistryV1beta1().Clusters()
	verify := func(generation int64) {
		t.Helper()
		verified := metav1ac.Condition().WithType(IdentityVerified).WithStatus(metav1.ConditionTrue).WithReason("Joined").WithMessage("").WithObservedGeneration(generation).WithLastTransitionTime(metav1.Now())
		if _, err := clusters.ApplyStatus(t.Context(), apply.Cluster("east").WithStatus(apply.ClusterStatus().WithConditions(verified)), metav1.ApplyOptions{FieldManager: "join", Force: true}); err != nil {
			t.Fatal(err)
		}
		b.settle("east")
		b.check("east")
	}
	change := func(generation int64, how func(*v1beta1.ClusterSpec)) {
		t.Helper()
		c := b.get("east")
		c.Generation = generation
		how(&c.Spec)
		if _, err := clusters.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.settle("east")
		b.check("east")
	}
	shows := func(reason, want string) {
		t.Helper()
		if got := b.shown("east", IdentityVerified); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
	verify(1)
	change(2, func(s *v1beta1.ClusterSpec) { s.DisplayName, s.Endpoints[0].ClientCIDRs = "East", nil })
	shows("another change", "True Joined")
	change(3, func(s *v1beta1.ClusterSpec) { s.Endpoints[0].URL = "https://elsewhere" })
	shows("another address", "Unknown EndpointChanged")
	b.answer(withheld, "elsewhere")
	b.check("east")
	shows("after another report", "Unknown EndpointChanged")
	b.added(b.get("east"), true) // as a restart does
	b.check("east")
	shows("after a restart", "Unknown EndpointChanged")
	verify(3)
	shows("verified again", "True Joined")
}

// TestFailedWrite expects the report after the next probe.
func TestFailedWrite(t *testing.T) {
	b := newBench(t, entry("east"))
	broken := true
	b.client.PrependReactor("patch", "clusters", func(kubetesting.Action) (bool, runtime.Object, error) {
		return broken, nil, apierrors.NewInternalError(errors.New("etcd is away"))
	})
	b.check("east")
	broken = false
	b.check("east")
	if got := b.shown("east", Available); got != "True Available" {
		t.Error(got)
	}
}

// TestSilenceOfIsolation expects that no heartbeat counts as missed while this side is cut
// off, nor at once after it.
func TestSilenceOfIsolation(t *testing.T) {
	clusters, names := entries(5)
	for _, cluster := range clusters {
		cluster.Spec.Heartbeat = &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 1}
	}
	b := newBench(t, clusters...)
	b.check(names...)
	b.answer(down, names...)
	shown := func(when string) {
		t.Helper()
		for _, name := range names {
			if got := b.shown(name, Available); got != "True Available" {
				t.Errorf("%s, %s: %s", when, name, got)
			}
		}
	}
	for range 6 {
		b.check(names...)
	}
	shown("while it is isolated")
	b.answer(ready, names[:3]...)
	b.check(names[0], names[1], names[2], names[3], names[4])
	shown("after it")
	if b.isolated {
		t.Error("it is still isolated")
	}
}

func TestAlive(t *testing.T) {
	at := func(seconds int64) *v1beta1.Cluster {
		c := entry("east")
		if seconds >= 0 {
			seen := metav1.NewTime(time.Unix(seconds, 0))
			c.Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: "agent", LastSeen: &seen}}}
		}
		return c
	}
	own := entry("east")
	own.Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: Reporter, LastSeen: &metav1.Time{Time: time.Unix(9, 0)}}}}
	for _, test := range []struct {
		reason      string
		before, now *v1beta1.Cluster
		want        bool
	}{
		{"the first", at(-1), at(5), true},
		{"another", at(5), at(6), true},
		{"an earlier one, by a clock that was set back", at(5), at(4), true},
		{"the same", at(5), at(5), false},
		{"the reporter has gone", at(5), at(-1), false},
		{"this controller's own", at(-1), own, false},
	} {
		if got := alive(test.before, test.now); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// TestTrimmed keeps of an entry only what verdicts follow from.
func TestTrimmed(t *testing.T) {
	large := entry("east")
	large.Annotations = map[string]string{"a": "b"}
	large.Spec.Access = []v1beta1.Access{{Name: "a"}}
	large.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}, {Manager: Reporter}}
	b := newBench(t, large)
	kept, err := b.lister.Get("east")
	if err != nil {
		t.Fatal(err)
	}
	if kept.Annotations != nil || kept.Spec.Access != nil || len(kept.Spec.Endpoints) != 1 || len(kept.ManagedFields) != 1 || kept.ManagedFields[0].Manager != Reporter {
		t.Errorf("%+v", kept)
	}
}

// TestExpiryAfterRestart has two API servers behind one address: the end of the first
// certificate stays reported when another process asks the other one first, until it is
// in the past.
func TestExpiryAfterRestart(t *testing.T) {
	b := newBench(t, entry("east"))
	first, second := b.clock.Now().Add(time.Hour).UTC(), b.clock.Now().Add(48*time.Hour).UTC()
	check := func(expires, want time.Time, writes int64) {
		t.Helper()
		result := ready
		result.Expires = expires
		b.answer(result, "east")
		b.check("east")
		if p := property(b.get("east").Status.Properties); p == nil || p.Value != want.Format(time.RFC3339) || b.writes.Load() != writes {
			t.Errorf("%+v after %d writes, want %s after %d", p, b.writes.Load(), want, writes)
		}
	}
	check(first, first, 1)
	b.added(b.get("east"), true) // as a restart does
	check(second, first, 1)
	b.clock.Step(time.Hour)
	check(second, second, 2)
}

// TestFailing says that reports can't be written, or clusters not watched, and that they
// can again; not when that is so of one report, or of one cluster alone.
func TestFailing(t *testing.T) {
	clusters, names := entries(4)
	b := newBench(t, clusters...)
	var broken error
	b.client.PrependReactor("patch", "clusters", func(kubetesting.Action) (bool, runtime.Object, error) {
		return broken != nil, nil, broken
	})
	said := func(reason string, want ...contract.FunctionState) {
		t.Helper()
		if !slices.Equal(b.said, want) {
			t.Errorf("%s: %v, want %v", reason, b.said, want)
		}
		b.said = nil
	}
	broken = apierrors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("Cluster").GroupKind(), names[0], nil)
	for range 4 {
		b.check(names[0])
	}
	said("the report of one cluster is not valid")
	broken = apierrors.NewForbidden(v1beta1.Resource("clusters"), names[0], errors.New("no"))
	b.check(names[:2]...)
	said("two reports")
	b.check(names[2])
	said("three reports", contract.FunctionFailing)
	b.check(names[3])
	said("four reports")
	broken = nil
	b.check(names[3])
	said("one that is written", contract.FunctionRunning)
	b.check(names...)
	b.unwatched = errors.New("forbidden")
	b.check(names[0])
	said("no watch", contract.FunctionFailing)
	b.unwatched = nil
	b.check(names[0])
	said("a watch", contract.FunctionRunning)
	b.answer(withheld, names...)
	broken = apierrors.NewInternalError(errors.New("etcd is away"))
	b.check(names...)
	said("all reports", contract.FunctionFailing)
	b.answer(ready, names...)
	b.check(names...) // which is what was reported before
	said("nothing is left to report", contract.FunctionRunning)
}

// TestGap says that ranges of the host cluster are not known, while nothing worse is to be
// said, also where there is no cluster yet, and once they are known that they are.
func TestGap(t *testing.T) {
	clusters, names := entries(1)
	b := newBench(t, clusters...)
	gap, said := "Ranges are missing.", []string{}
	b.Gap = func() string { return gap }
	b.Say = func(state contract.FunctionState, message string) { said = append(said, string(state)+" "+message) }
	expect := func(reason string, want ...string) {
		t.Helper()
		if !slices.Equal(said, want) {
			t.Errorf("%s: %q, want %q", reason, said, want)
		}
		said = nil
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.Run(ended)
	expect("before any probe", "RangesUnknown Ranges are missing.")
	b.check(names...)
	expect("a probe")
	b.unwatched = errors.New("forbidden")
	b.check(names...)
	expect("something worse", "Failing Clusters of the registry can't be watched, so that changes of their entries are not seen: forbidden")
	b.unwatched = nil
	b.check(names...)
	expect("nothing worse", "RangesUnknown Ranges are missing.")
	gap = ""
	b.check(names...)
	expect("they are known", "Running ")
	b.check(names...)
	expect("they stay known")
}

// TestSteadyFleetWritesNothing is what a fleet of 10,000 healthy clusters costs the
// registry after the first round: nothing.
func TestSteadyFleetWritesNothing(t *testing.T) {
	first, steady, checks := steadyFleet(t, 10000, 3)
	if first != 10000 || steady != 0 {
		t.Errorf("%d writes in the first round, %d in %d checks after it", first, steady, checks)
	}
	t.Logf("10000 clusters: %d writes in the first round; %d writes in %d checks after it", first, steady, checks)
}

// storing keeps what is applied as it is: to merge it costs the fake 10 ms.
type storing struct {
	typed.ClusterInterface
	*bench
}

func (s *storing) ApplyStatus(ctx context.Context, applied *apply.ClusterApplyConfiguration, _ metav1.ApplyOptions) (*v1beta1.Cluster, error) {
	s.writes.Add(1)
	stored, err := s.lister.Get(*applied.Name)
	if err != nil {
		return nil, err
	}
	stored = stored.DeepCopy()
	content, err := json.Marshal(applied.Status)
	if err != nil {
		return nil, err
	}
	stored.Status = &v1beta1.ClusterStatus{}
	if err := json.Unmarshal(content, stored.Status); err != nil {
		return nil, err
	}
	written, err := s.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	// The fake has no room for many events that were not read yet.
	eventually(s.t, "the informer to have the report", func() bool {
		c, err := s.lister.Get(written.Name)
		return err == nil && ownEntry(statusOf(c)) != nil
	})
	return written, nil
}

// steadyFleet checks clusters for some rounds after the first, through the real
// informer and evaluation, and returns what was written.
func steadyFleet(t testing.TB, size, rounds int) (first, steady int64, checks int) {
	clusters, names := entries(size)
	b := newBench(t, clusters...)
	b.Clusters = &storing{ClusterInterface: b.Clusters, bench: b}
	round := func() {
		b.clock.Step(time.Minute)
		var wait sync.WaitGroup
		for worker := range 4 {
			wait.Go(func() {
				for i := worker; i < len(names); i += 4 {
					b.Check(t.Context(), names[i])
				}
			})
		}
		wait.Wait()
	}
	round()
	first = b.writes.Load()
	if bench, ok := t.(*testing.B); ok {
		bench.ResetTimer()
	}
	for range rounds {
		round()
	}
	return first, b.writes.Load() - first, rounds * size
}

// BenchmarkSteadyFleet is a round of 10,000 healthy clusters, but for the probes
// themselves.
func BenchmarkSteadyFleet(b *testing.B) {
	_, writes, checks := steadyFleet(b, 10000, b.N)
	b.ReportMetric(float64(writes)/float64(checks), "writes/check")
	b.ReportMetric(float64(checks)/float64(b.N), "checks/round")
}
