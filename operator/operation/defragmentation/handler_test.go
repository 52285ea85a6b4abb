package defragmentation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/maintenance"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// fleet is an etcd of members m0, led by it, m1 and so on, whose free pages defragmenting
// takes away.
type fleet struct {
	operation *operatorv1alpha1.Operation
	etcd      operatorv1alpha1.EtcdStatus
	state     etcd.State
	recorded  etcd.Identity
	now       time.Time
	called    []string
	refusal   error
	keeps     bool // the free pages
	window    maintenance.Window
	busy      string
	old       etcd.Seen
	request   contract.DefragmentRequest
	compacts  func(int64) error
}

func newFleet(members int, fragmented ...int) *fleet {
	f := &fleet{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), recorded: etcd.Identity{ClusterID: "c", Members: map[string]string{}}}
	for i := range members {
		name, id := fmt.Sprintf("m%d", i), fmt.Sprintf("a%d", i)
		f.etcd.Members = append(f.etcd.Members, operatorv1alpha1.EtcdMember{Name: name})
		f.state.Members = append(f.state.Members, etcd.Member{Name: name, ID: id, ClusterID: "c", Leader: "a0", Term: 1, DBSize: 300 << 20, DBSizeInUse: 290 << 20})
		f.state.List = append(f.state.List, etcd.Listed{ID: id, Name: name})
		f.recorded.Members[name] = id
		if slices.Contains(fragmented, i) {
			f.state.Members[i].DBSizeInUse = 100 << 20
		}
	}
	return f
}

func (f *fleet) handler() Handler {
	return Handler{Operation: f.operation, Etcd: &f.etcd, Now: f.now, State: f.state, Recorded: f.recorded, Window: f.window, Busy: f.busy, Old: f.old, Request: f.request, Event: func(string, string, string) {}, Compact: f.compact,
		Defragment: func(_ context.Context, member string) error {
			f.called = append(f.called, member)
			i := slices.IndexFunc(f.state.Members, func(m etcd.Member) bool { return m.Name == member })
			if !f.keeps {
				f.state.Members[i].DBSize = f.state.Members[i].DBSizeInUse
			}
			return f.refusal
		}}
}

func (f *fleet) compact(_ context.Context, revision int64) error { return f.compacts(revision) }

// reconcile is one reconcile of a registry, after which the operator is killed before the
// status is written, or not.
func (f *fleet) reconcile(t *testing.T, killed bool, change func(*operation.Driver)) (verdict.Verdict, operation.Progress) {
	t.Helper()
	wrote, etcd := f.operation.DeepCopy(), f.etcd.DeepCopy()
	d := &operation.Driver{Status: f.operation, Recorded: wrote, Now: f.now}
	if change != nil {
		change(d)
	}
	v, progress := d.Advance(t.Context(), f.handler())
	if killed {
		f.operation, f.etcd = wrote, *etcd
	}
	return v, progress
}

// hours returns a window that opens at an hour of each day, and is open for one.
func hours(hour int) maintenance.Window {
	return maintenance.New(&operatorv1alpha1.MaintenanceWindow{Schedule: fmt.Sprintf("0 %d * * *", hour), Duration: metav1.Duration{Duration: time.Hour}})
}

// TestDue is about when a defragmentation begins.
func TestDue(t *testing.T) {
	ago := func(d time.Duration) func(*fleet) {
		return func(f *fleet) { f.etcd.Members[1].DefragmentedTime = &metav1.Time{Time: f.now.Add(-d)} }
	}
	for _, test := range []struct {
		reason  string
		members int
		which   []int
		change  func(*fleet)
		want    bool
	}{
		{"none is fragmented", 3, nil, nil, false},
		{"one is", 3, []int{1}, nil, true},
		{"a single member would take the registry down", 1, []int{0}, nil, false},
		{"a single member, in the window", 1, []int{0}, func(f *fleet) { f.window = hours(3) }, true},
		{"a single member, outside of the window", 1, []int{0}, func(f *fleet) { f.window = hours(4) }, false},
		{"a single member that is down, in the window", 1, []int{0}, func(f *fleet) { f.window, f.state.Members[0].Err = hours(3), errors.New("down") }, false},
		{"a single member with an alarm, in the window", 1, []int{0}, func(f *fleet) { f.window, f.state.Alarms = hours(3), []etcd.Alarm{{MemberID: "a0", Type: "CORRUPT"}} }, false},
		{"one is, in the window", 3, []int{1}, func(f *fleet) { f.window = hours(3) }, true},
		{"one is, outside of the window", 3, []int{1}, func(f *fleet) { f.window = hours(4) }, false},
		{"one is, and the window never opens", 3, []int{1}, func(f *fleet) { f.window = hours(99) }, false},
		{"another one is down, in the window", 3, []int{1}, func(f *fleet) { f.window, f.state.Members[2].Err = hours(3), errors.New("down") }, false},
		{"it was tried a short while ago", 3, []int{1}, ago(time.Minute), false},
		{"it was tried long ago", 3, []int{1}, ago(2 * time.Hour), true},
		{"another member is down", 3, []int{1}, func(f *fleet) { f.state.Members[2].Err = errors.New("down") }, false},
		{"the fragmented one is down", 3, []int{1}, func(f *fleet) { f.state.Members[1].Err = errors.New("down") }, false},
		{"an alarm is raised", 3, []int{1}, func(f *fleet) { f.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "CORRUPT"}} }, false},
		{"a member was added", 3, []int{1}, func(f *fleet) { f.state.List = append(f.state.List, etcd.Listed{ID: "a9", Learner: true}) }, false},
		{"a follower is behind", 3, []int{1}, func(f *fleet) { f.state.Members[0].CommittedIndex = 5000 }, false},
	} {
		f := newFleet(test.members, test.which...)
		if test.change != nil {
			test.change(f)
		}
		if got := f.handler().Due(); got != test.want {
			t.Errorf("%s: due %t", test.reason, got)
		}
	}
}

// TestDefragmentation goes through all members with an operator that is killed in every
// other reconcile: one at a time, the leader last, with time between them, and with each
// member in the status before it is defragmented.
func TestDefragmentation(t *testing.T) {
	for _, killed := range []bool{false, true} {
		f := newFleet(3, 0, 1, 2)
		f.operation = &operatorv1alpha1.Operation{Phase: operatorv1alpha1.PhasePreflight, PhaseStartedTime: metav1.NewTime(f.now)}
		last, calls := time.Time{}, 0
		for i := range 200 {
			f.now = f.now.Add(3 * time.Second)
			recorded := *f.operation
			v, progress := f.reconcile(t, killed && i%2 == 0, nil)
			if len(f.called) > calls {
				calls = len(f.called)
				if recorded.Phase != operatorv1alpha1.PhaseDefragmentation || recorded.To != f.called[calls-1] {
					t.Errorf("%s was defragmented in %+v", f.called[calls-1], recorded)
				}
				if wait := f.now.Sub(last); wait < pause && f.called[calls-1] != f.called[max(0, calls-2)] {
					t.Errorf("%s was defragmented after %s", f.called[calls-1], wait)
				}
				last = f.now
			}
			if progress == operation.Completed && (!killed || i%2 != 0) {
				break
			}
			if v.Complete() == (progress == operation.UnderWay) {
				t.Fatalf("%+v, progress %d", v, progress)
			}
		}
		if !slices.Equal(f.called, []string{"m1", "m2", "m0"}) {
			t.Errorf("defragmented %q", f.called)
		}
	}
}

// TestDefragmentationWaits is about what happens in one reconcile.
func TestDefragmentationWaits(t *testing.T) {
	started := func(f *fleet) {
		f.operation.Phase, f.operation.To = operatorv1alpha1.PhaseDefragmentation, "m1"
	}
	tried := func(f *fleet) {
		started(f)
		f.etcd.Members[1].DefragmentedTime = &metav1.Time{Time: f.now}
		f.state.Members[1].DBSizeInUse = f.state.Members[1].DBSize
	}
	replacing := func(f *fleet) { f.busy = "etcd: 1 of 3 members updated" }
	down := func(i int) func(*fleet) { return func(f *fleet) { f.state.Members[i].Err = errors.New("down") } }
	for _, test := range []struct {
		reason  string
		changes []func(*fleet)
		driver  func(*operation.Driver)
		called  int
		then    operatorv1alpha1.OperationPhase
		says    string // completed when empty
	}{
		{"the first", nil, nil, 0, "Defragmentation", "starts"},
		{"paused meanwhile", nil, func(d *operation.Driver) { d.HeldReason, d.HeldUntil = "Paused", "spec.paused is false" }, 0, "Preflight", "Preflight completed; Defragmentation starts when spec.paused is false"},
		{"a member is down", []func(*fleet){down(2)}, nil, 0, "Preflight", "m1 is next, but must wait: only 2 of 3 members are ready"},
		{"another one a short while ago", []func(*fleet){func(f *fleet) { f.etcd.Members[2].DefragmentedTime = &metav1.Time{Time: f.now.Add(-time.Second)} }}, nil, 0, "Preflight", "m1 is next, 36s after m2"},
		{"it is chosen", []func(*fleet){started}, nil, 1, "Defragmentation", "m1 is through"},
		{"another one is replaced", []func(*fleet){replacing}, nil, 0, "Preflight", "m1 is next, but must wait: etcd: 1 of 3"},
		{"it is chosen, and another one is replaced since", []func(*fleet){started, replacing}, nil, 0, "Preflight", "m1 must wait: etcd: 1 of 3"},
		{"it is through, and the operator ended before that was noted", []func(*fleet){started, func(f *fleet) { f.state.Members[1].DBSizeInUse = f.state.Members[1].DBSize }}, nil, 0, "Defragmentation", ""},
		{"it was noted by a clock that is ahead", []func(*fleet){started, func(f *fleet) {
			f.operation.PhaseStartedTime = metav1.NewTime(f.now.Add(time.Hour))
			f.etcd.Members[1].DefragmentedTime = &metav1.Time{Time: f.now.Add(-time.Second)}
		}}, nil, 0, "Defragmentation", ""},
		{"the one before was through a short while ago", []func(*fleet){func(f *fleet) {
			f.etcd.Members[2].DefragmentedTime = &metav1.Time{Time: f.now.Add(-10 * time.Minute)}
			f.operation.PhaseStartedTime = metav1.NewTime(f.now.Add(-time.Second))
		}}, nil, 0, "Preflight", "m1 is next, 36s after m2"},
		{"it is chosen, and a member is down since", []func(*fleet){started, down(2)}, nil, 0, "Preflight", "m1 must wait: only 2 of 3"},
		{"it is chosen, and down since", []func(*fleet){started, down(1)}, nil, 0, "Preflight", "m1 must wait"},
		{"it is chosen, and leads since", []func(*fleet){started, func(f *fleet) {
			f.state.Members[2].DBSizeInUse = 0
			for i := range f.state.Members {
				f.state.Members[i].Leader = "a1"
			}
		}}, nil, 0, "Preflight", "m1 must wait: m2 is to be first"},
		{"it fails", []func(*fleet){started, func(f *fleet) { f.refusal = errors.New("no space left on device") }}, nil, 1, "Defragmentation", "m1: no space left on device"},
		{"it takes its time", []func(*fleet){tried, down(1)}, nil, 0, "Defragmentation", "m1 does not answer until it is through"},
		{"it is through, and another one is next", []func(*fleet){tried, func(f *fleet) { f.state.Members[2].DBSizeInUse = 0 }}, nil, 0, "Preflight", "m1 is through"},
		{"it is through", []func(*fleet){tried}, nil, 0, "Defragmentation", ""},
		{"it is chosen, and the window is over", []func(*fleet){started, func(f *fleet) { f.window = hours(4) }}, nil, 0, "Defragmentation", ""},
		{"it is to be chosen, and the window is over", []func(*fleet){func(f *fleet) { f.window = hours(4) }}, nil, 0, "Defragmentation", "starts"},
		{"it takes its time, and the window is over", []func(*fleet){tried, down(1), func(f *fleet) { f.window = hours(4) }}, nil, 0, "Defragmentation", "m1 does not answer until it is through"},
		{"it is through, another one is next, and the window is over", []func(*fleet){tried, func(f *fleet) { f.state.Members[2].DBSizeInUse, f.window = 0, hours(4) }}, nil, 0, "Defragmentation", ""},
		{"nothing may be changed", []func(*fleet){started}, func(d *operation.Driver) { d.ReadOnly = "EtcdReady: it is another etcd" }, 0, "Defragmentation", "nothing is changed now: EtcdReady"},
	} {
		f := newFleet(3, 1)
		f.operation = &operatorv1alpha1.Operation{Phase: operatorv1alpha1.PhasePreflight, PhaseStartedTime: metav1.NewTime(f.now.Add(-time.Minute))}
		for _, change := range test.changes {
			change(f)
		}
		v, progress := f.reconcile(t, false, test.driver)
		if !strings.Contains(v.Message, test.says) || (progress == operation.Completed) != (test.says == "") || f.operation.Phase != test.then || len(f.called) != test.called {
			t.Errorf("%s: %+v, progress %d, %+v, called %q", test.reason, v, progress, f.operation, f.called)
		}
	}
}

// TestNotAgainAtOnce is about a member whose free pages stay: it is not defragmented again
// and again.
func TestNotAgainAtOnce(t *testing.T) {
	f := newFleet(3, 1)
	f.keeps = true
	f.operation = &operatorv1alpha1.Operation{Phase: operatorv1alpha1.PhasePreflight, PhaseStartedTime: metav1.NewTime(f.now)}
	for range 100 {
		f.now = f.now.Add(3 * time.Second)
		if _, progress := f.reconcile(t, false, nil); progress == operation.Completed {
			break
		}
	}
	if len(f.called) != 1 || f.handler().Due() {
		t.Errorf("called %q", f.called)
	}
}

// TestWindow has members defragmented in a window that closes before the last one of them,
// which waits for the next one.
func TestWindow(t *testing.T) {
	for _, members := range []int{1, 3} {
		f := newFleet(members, []int{0, 1, 2}[:members]...)
		f.window = maintenance.New(&operatorv1alpha1.MaintenanceWindow{Schedule: "0 4 * * *", Duration: metav1.Duration{Duration: 80 * time.Second}})
		for end := f.now.Add(48 * time.Hour); f.now.Before(end); f.now = f.now.Add(5 * time.Second) {
			before := len(f.called)
			if f.operation == nil && f.handler().Due() {
				f.operation = &operatorv1alpha1.Operation{}
				operation.Enter(f.operation, operatorv1alpha1.PhasePreflight, f.now)
			} else if f.operation != nil {
				if _, progress := f.reconcile(t, false, nil); progress != operation.UnderWay {
					f.operation = nil
				}
			}
			if len(f.called) > before && !f.window.Open(f.now) {
				t.Errorf("%s was defragmented at %s", f.called[before], f.now)
			}
			message, opens := f.handler().Held()
			if waits := len(f.called) < members && !f.window.Open(f.now); waits != (message != "") || waits && (opens.Before(f.now) || opens.Hour() != 4) {
				t.Errorf("at %s, after %q: %q, opens %s", f.now, f.called, message, opens)
			}
		}
		if want := []string{"m1", "m2", "m0"}; members == 3 && !slices.Equal(f.called, want) || members == 1 && !slices.Equal(f.called, want[2:]) {
			t.Errorf("defragmented %q of %d", f.called, members)
		}
	}
}

// TestHeld is about what is said of members that wait for a window.
func TestHeld(t *testing.T) {
	for _, test := range []struct {
		reason  string
		members int
		window  maintenance.Window
		says    string
	}{
		{"a single member without a window", 1, maintenance.Window{}, "much of the file is free of m0, to be defragmented in a maintenance window, since a single member answers nothing meanwhile, and there is none: add spec.etcd.maintenanceWindow"},
		{"a single member", 1, hours(4), "much of the file is free of m0, to be defragmented in the maintenance window, which opens next at 2030-01-02T04:00:00Z: the registry is unavailable then for about a second per 100 MB that are in use"},
		{"a single member that had its window today", 1, hours(2), "opens next at 2030-01-03T02:00:00Z"},
		{"three members", 3, hours(4), "much of the file is free of m0, m1, m2, to be defragmented in the maintenance window, which opens next at 2030-01-02T04:00:00Z"},
		{"three members, in the window", 3, hours(3), ""},
		{"three members without a window", 3, maintenance.Window{}, ""},
		{"a window that never opens", 3, hours(99), "in the maintenance window, which does not open"},
	} {
		f := newFleet(test.members, []int{0, 1, 2}[:test.members]...)
		f.window = test.window
		if message, _ := f.handler().Held(); !strings.Contains(message, test.says) || (message == "") != (test.says == "") {
			t.Errorf("%s: %q", test.reason, message)
		}
	}
}
