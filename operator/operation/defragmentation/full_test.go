package defragmentation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
)

// room is what becomes of a full fleet's history, in the order of events.
type room struct {
	*fleet
	// revisions and live are how much the history and the clusters take, in MiB.
	history, live int64
	events        []string
}

// newRoom returns an etcd that is full, at revision 1000, with members whose quota is 1000
// MiB.
func newRoom(members int, history, live int64) *room {
	r := &room{fleet: newFleet(members), history: history, live: live}
	for i := range r.state.Members {
		m := &r.state.Members[i]
		m.Quota, m.Revision, m.DBSize, m.DBSizeInUse = 1000<<20, 1000, 1000<<20, (history+live)<<20
		m.Errors = []string{"memberID:160 alarm:NOSPACE "}
	}
	r.state.Alarms = []etcd.Alarm{{MemberID: "a0", Type: etcd.AlarmNoSpace}}
	r.compacts = func(int64) error {
		r.events = append(r.events, "compact")
		r.history = 0
		// A member counts what was freed last as in use.
		return nil
	}
	return r
}

// reconcile is one of a registry whose stage disarms the alarm when there is room.
func (r *room) reconcile(t *testing.T, killed bool) {
	t.Helper()
	calls := len(r.called)
	if err := r.state.Full(r.recorded); err == nil && r.state.NoSpace() {
		r.events = append(r.events, "disarm")
		r.state.Alarms = nil
	}
	if h := r.handler(); r.operation != nil {
		if _, progress := r.fleet.reconcile(t, killed, nil); progress != operation.UnderWay && !killed {
			r.operation = nil
		}
	} else if h.Due() {
		r.operation = &operatorv1alpha1.Operation{}
		operation.Enter(r.operation, operatorv1alpha1.PhasePreflight, r.now)
	}
	if len(r.called) > calls {
		r.events = append(r.events, r.called[calls])
		i := slices.IndexFunc(r.state.Members, func(m etcd.Member) bool { return m.Name == r.called[calls] })
		r.state.Members[i].DBSizeInUse = (r.history + r.live) << 20
		r.state.Members[i].DBSize = r.state.Members[i].DBSizeInUse
	}
}

// TestFull brings etcds that are full to where writes are accepted again, with an operator
// that is killed in every other reconcile as well.
func TestFull(t *testing.T) {
	for _, test := range []struct {
		reason        string
		members       int
		history, live int64
		old           int64 // a revision that is old enough, if one is known
		want          string
		after         time.Duration
	}{
		{"history, and a revision is known that is old enough", 3, 600, 390, 900, "compact m1 m2 m0 disarm", 0},
		{"history, and no revision is known", 3, 600, 390, 0, "compact m1 m2 m0 disarm", etcd.History},
		{"history, of a single member", 1, 600, 390, 0, "compact m0 disarm", etcd.History},
		{"free pages", 3, 0, 390, 0, "m1 m2 m0 disarm", 0},
		{"free pages, and a revision is known", 3, 0, 390, 900, "compact m1 m2 m0 disarm", 0},
		{"clusters", 3, 0, 990, 0, "compact m1 m2 m0", etcd.History},
	} {
		for _, killed := range []bool{false, true} {
			r := newRoom(test.members, test.history, test.live)
			started := r.now
			if test.old > 0 {
				r.old = etcd.Seen{Revision: test.old, Time: started.Add(-etcd.History)}
			}
			first := time.Time{}
			for i := range 600 {
				r.now = r.now.Add(3 * time.Second)
				r.reconcile(t, killed && i%2 == 0)
				if len(r.events) > 0 && first.IsZero() {
					first = r.now
				}
			}
			events := slices.Compact(r.events) // what was not noted is done again
			if got := strings.Join(events, " "); got != test.want && !strings.HasPrefix(got, test.want+" compact") {
				t.Errorf("%s, killed %t: %s, want %s", test.reason, killed, got, test.want)
			}
			if wait := first.Sub(started); wait < test.after || wait > test.after+time.Minute {
				t.Errorf("%s, killed %t: it begins after %s", test.reason, killed, wait)
			}
			if r.operation != nil {
				t.Errorf("%s, killed %t: it does not end: %+v", test.reason, killed, r.operation)
			}
		}
	}
}

// TestFullAgain is about an etcd in which there was no room: it is tried again when clusters
// were removed, and nothing is done until then.
func TestFullAgain(t *testing.T) {
	r := newRoom(3, 0, 990)
	run := func(minutes int) string {
		r.events = nil
		for range minutes * 20 {
			r.now = r.now.Add(3 * time.Second)
			r.reconcile(t, false)
		}
		return strings.Join(r.events, " ")
	}
	if got := run(30); got != "compact m1 m2 m0" {
		t.Fatalf("it is full of clusters: %s", got)
	}
	if got := run(180); got != "" {
		t.Errorf("nothing has changed, and yet: %s", got)
	}
	r.live, r.history = 500, 490
	for i := range r.state.Members {
		r.state.Members[i].Revision = 1010
	}
	if got := run(30); got != "compact m1 m2 m0 disarm" {
		t.Errorf("clusters were removed: %s", got)
	}
}

// TestFullWaits is about one reconcile of an etcd that is full.
func TestFullWaits(t *testing.T) {
	in := func(phase operatorv1alpha1.OperationPhase) func(*room) {
		return func(r *room) { r.operation.Phase = phase }
	}
	known := func(r *room) { r.old = etcd.Seen{Revision: 900, Time: r.now.Add(-etcd.History)} }
	compacted := func(r *room) {
		r.etcd.Compaction = &operatorv1alpha1.EtcdCompaction{Revision: 1000, RevisionTime: metav1.NewTime(r.now.Add(-time.Hour)), CompletionTime: &metav1.Time{Time: r.now.Add(-time.Second)}}
	}
	for _, test := range []struct {
		reason  string
		changes []func(*room)
		then    operatorv1alpha1.OperationPhase
		says    string // nothing when it is complete
		events  string
	}{
		{"no revision is known", nil, "Preflight", "the history before revision 1000 is compacted at 2030-01-02T03:09:05Z, when that is 5m0s old", ""},
		{"a revision is known", []func(*room){known}, "Compaction", "starts", ""},
		{"a revision is known of another etcd", []func(*room){func(r *room) { r.old = etcd.Seen{Revision: 2000, Time: r.now.Add(-etcd.History)} }}, "Preflight", "before revision 1000", ""},
		{"a compaction was prepared for another etcd", []func(*room){func(r *room) {
			r.etcd.Compaction = &operatorv1alpha1.EtcdCompaction{Revision: 2000, RevisionTime: metav1.NewTime(r.now.Add(-time.Hour))}
		}}, "Preflight", "before revision 1000", ""},
		{"a compaction was prepared by a clock that is ahead", []func(*room){func(r *room) {
			r.etcd.Compaction = &operatorv1alpha1.EtcdCompaction{Revision: 500, RevisionTime: metav1.NewTime(r.now.Add(time.Hour))}
		}}, "Preflight", "before revision 1000 is compacted at 2030-01-02T03:09:05Z", ""},
		{"one has free pages, and the history is too young", []func(*room){func(r *room) { r.state.Members[1].DBSizeInUse = 1 << 20 }}, "Defragmentation", "starts", ""},
		{"members are replaced", []func(*room){known, func(r *room) { r.busy = "the quota grows" }}, "Preflight", "the history's compaction is next, but must wait: the quota grows", ""},
		{"a member is down", []func(*room){known, func(r *room) { r.state.Members[2].Err = errors.New("down") }}, "Preflight", "must wait: only 2 of 3 members are ready", ""},
		{"data differs, too", []func(*room){known, func(r *room) { r.state.Alarms = append(r.state.Alarms, etcd.Alarm{Type: etcd.AlarmCorrupt}) }}, "Preflight", "CORRUPT", ""},
		{"it is compacted", []func(*room){known, in("Compaction")}, "Defragmentation", "starts", "compact"},
		{"it is compacted, and fails", []func(*room){known, in("Compaction"), func(r *room) { r.compacts = func(int64) error { return errors.New("no answer") } }}, "Compaction", "no answer", ""},
		{"a member went down before it was compacted", []func(*room){known, in("Compaction"), func(r *room) { r.state.Members[2].Err = errors.New("down") }}, "Preflight", "the compaction must wait: only 2 of 3", ""},
		{"the alarm was disarmed before it was compacted", []func(*room){known, in("Compaction"), func(r *room) { r.state.Alarms = nil }}, "Defragmentation", "starts", ""},
		{"the alarm was disarmed in the preflight", []func(*room){func(r *room) { r.state.Alarms = nil }}, "Defragmentation", "starts", ""},
		{"a member is next", []func(*room){compacted}, "Defragmentation", "starts", ""},
		{"it is compacted, and nothing is left to be done", []func(*room){compacted, func(r *room) {
			for i := range r.etcd.Members {
				r.etcd.Members[i].DefragmentedTime = &metav1.Time{Time: r.now.Add(-time.Minute)}
			}
		}}, "Defragmentation", "starts", ""},
		{"nothing was chosen", []func(*room){compacted, in("Defragmentation")}, "Defragmentation", "", ""},
	} {
		r := newRoom(3, 600, 390)
		r.operation = &operatorv1alpha1.Operation{Phase: operatorv1alpha1.PhasePreflight, PhaseStartedTime: metav1.NewTime(r.now.Add(-time.Minute))}
		for _, change := range test.changes {
			change(r)
		}
		v, progress := r.fleet.reconcile(t, false, nil)
		if !strings.Contains(v.Message, test.says) || (progress == operation.Completed) != (test.says == "") || r.operation.Phase != test.then || strings.Join(r.events, " ") != test.events {
			t.Errorf("%s: %+v, progress %d, %+v, %q", test.reason, v, progress, r.operation, r.events)
		}
	}
}

// TestFullDue is about when an etcd that is full is worked on, and that a compaction which
// was not made is forgotten.
func TestFullDue(t *testing.T) {
	pending := func(r *room) {
		r.etcd.Compaction = &operatorv1alpha1.EtcdCompaction{Revision: 1000, RevisionTime: metav1.NewTime(r.now.Add(-time.Minute))}
	}
	for _, test := range []struct {
		reason  string
		change  func(*room)
		due     bool
		forgets bool
	}{
		{"it is full", func(*room) {}, true, false},
		{"the maintenance window is closed", func(r *room) { r.window = hours(4) }, true, false},
		{"its list of members and alarms is not known", func(r *room) { r.state.ListErr = errors.New("no answer"); pending(r) }, false, false},
		{"a member is down", func(r *room) { r.state.Members[1].Err = errors.New("down") }, false, false},
		{"it is not full any more", func(r *room) { r.state.Alarms = nil; pending(r) }, false, true},
		{"it has a quota by now that is large enough", func(r *room) {
			for i := range r.state.Members {
				r.state.Members[i].Quota = 2000 << 20
			}
		}, false, false},
	} {
		r := newRoom(3, 600, 390)
		test.change(r)
		had := r.etcd.Compaction != nil
		h := r.handler()
		h.Relax()
		if due := h.Due(); due != test.due || (had && r.etcd.Compaction == nil) != test.forgets {
			t.Errorf("%s: due %t, %+v", test.reason, due, r.etcd.Compaction)
		}
	}
}
