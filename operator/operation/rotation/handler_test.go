package rotation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operation"
)

// world is a registry with one CA, as far as a rotation sees it. What the record says becomes
// true with the next reconcile, and each thing takes some of them.
type world struct {
	t        *testing.T
	recorded generation.InUse
	// issued, trusted, shown are generations; withdrawing is in effect while the operation is
	// in that phase.
	issued, trusted map[int32]bool
	shown           int32
	withdrawing     bool
	slow            int
	records         []string
}

func (w *world) Record(_ context.Context, u generation.InUse) error {
	switch {
	case u.Signing != w.recorded.Signing && (!w.trusted[u.Signing] || !w.trusted[w.recorded.Signing]):
		w.t.Errorf("generation %d signs while %v are trusted", u.Signing, w.trusted)
	case u.Also == 0 && w.recorded.Previous() && (w.shown != u.Signing || w.trusted[w.recorded.Also]):
		w.t.Errorf("%d is forgotten while %d is shown and %v are trusted", w.recorded.Also, w.shown, w.trusted)
	}
	w.recorded = u
	w.records = append(w.records, u.String())
	return nil
}

func (w *world) Issued(context.Context) error {
	return unless(w.issued[w.recorded.Also], "it is not issued")
}

func (w *world) Trusted(context.Context) error {
	return unless(w.trusted[w.recorded.Signing] && w.trusted[w.recorded.Also], "one is not trusted")
}

func (w *world) Shown(context.Context) error {
	return unless(w.shown == w.recorded.Signing, "another is shown")
}

func (w *world) Withdrawn(context.Context) error {
	return unless(!w.trusted[w.recorded.Also], "it is still trusted")
}

func unless(holds bool, message string) error {
	if holds {
		return nil
	}
	return errors.New(message)
}

// settle is what the registry does automatically between two reconciles. Whoever shows a
// generation that is not trusted fails requests.
func (w *world) settle() {
	if w.slow++; w.slow%3 != 0 {
		return
	}
	for _, n := range w.recorded.All() {
		leaving := w.withdrawing && n == w.recorded.Also
		if w.issued[n] && !leaving {
			w.trusted[n] = true
		}
		if leaving {
			delete(w.trusted, n)
		}
		w.issued[n] = true
	}
	w.shown = w.recorded.Signing
	if !w.trusted[w.shown] {
		w.t.Errorf("generation %d is shown, and %v are trusted", w.shown, w.trusted)
	}
}

// run reconciles until nothing is to be done, and returns the phases that were gone through.
// The operator is killed where killed says, after a reconcile has acted and before its status
// is written.
func (w *world) run(desired generation.Desired, killed func(reconcile int) (lost, gone bool)) []string {
	var phases []string
	var recorded *operatorv1alpha1.Operation
	for i := range 300 {
		status := recorded.DeepCopy()
		w.withdrawing = status != nil && status.Phase == operatorv1alpha1.PhaseWithdrawal && !w.recorded.Next()
		h := Handler{Name: "client", CA: w, InUse: w.recorded, Desired: desired, Now: time.Unix(int64(i), 0), Operation: status}
		if status == nil {
			if !h.Due() {
				return phases
			}
			status = h.Begin()
		} else {
			driver := operation.Driver{Status: status, Recorded: recorded, Now: h.Now}
			if _, progress := driver.Advance(w.t.Context(), h); progress != operation.UnderWay {
				status = nil
			}
		}
		w.settle()
		lost, gone := killed(i)
		switch {
		case gone:
			recorded = nil // and the status with it
		case !lost:
			recorded = status
		}
		if phase := "done"; true {
			if recorded != nil {
				phase = string(recorded.Phase)
			}
			if len(phases) == 0 || phases[len(phases)-1] != phase {
				phases = append(phases, phase)
			}
		}
	}
	w.t.Fatalf("it does not end: %v, %v", w.records, phases)
	return nil
}

func newWorld(t *testing.T, u generation.InUse) *world {
	w := &world{t: t, recorded: u, issued: map[int32]bool{}, trusted: map[int32]bool{}, shown: u.Signing}
	for _, n := range u.All() {
		w.issued[n], w.trusted[n] = true, true
	}
	return w
}

func never(int) (bool, bool) { return false, false }

// TestRotation is about which phases a rotation goes through, and what is in use after it.
func TestRotation(t *testing.T) {
	for _, test := range []struct {
		reason  string
		from    generation.InUse
		desired generation.Desired
		phases  string
		records string
	}{
		{"automatic, to the end", generation.InUse{Signing: 1}, generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}, "Preflight Issuance Trust Reissue Withdrawal done", "1,2 2,1 2"},
		{"clients have certificates of the first", generation.InUse{Signing: 1}, generation.Desired{Generation: 2, Replaceable: 1}, "Preflight Issuance Trust Reissue done", "1,2 2,1"},
		{"and then it is dropped", generation.InUse{Signing: 2, Also: 1}, generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}, "Preflight Issuance Trust Reissue Withdrawal done", "2"},
		{"clients trust the first only", generation.InUse{Signing: 1}, generation.Desired{Generation: 2}, "Preflight Issuance Trust done", "1,2"},
		{"and then they trust both", generation.InUse{Signing: 1, Also: 2}, generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}, "Preflight Issuance Trust Reissue Withdrawal done", "2,1 2"},
		{"raised and dropped at once, over one that was not dropped", generation.InUse{Signing: 2, Also: 1}, generation.Desired{Generation: 3, Replaceable: 2, Dropped: 2},
			"Preflight Issuance Trust Reissue Withdrawal done Preflight Issuance Trust Reissue Withdrawal done", "2 2,3 3,2 3"},
		{"nothing is asked for", generation.InUse{Signing: 2}, generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}, "", ""},
		{"lowered", generation.InUse{Signing: 2}, generation.Desired{Generation: 1}, "", ""},
	} {
		w := newWorld(t, test.from)
		if phases := strings.Join(w.run(test.desired, never), " "); phases != test.phases || strings.Join(w.records, " ") != test.records {
			t.Errorf("%s: %s, recorded %v", test.reason, phases, w.records)
		}
	}
}

// TestRotationIsResumed kills the operator after each reconcile, with and without the loss of
// the status: nothing is shown that is not trusted, nothing is dropped that is shown, and it
// comes to the same end.
func TestRotationIsResumed(t *testing.T) {
	for _, desired := range []generation.Desired{{Generation: 2, Replaceable: 1, Dropped: 1}, {Generation: 2, Replaceable: 1}, {Generation: 2}} {
		want := newWorld(t, generation.InUse{Signing: 1})
		want.run(desired, never)
		for at := range 60 {
			for _, gone := range []bool{false, true} {
				for _, times := range []int{1, 2, 5} {
					w := newWorld(t, generation.InUse{Signing: 1})
					w.run(desired, func(i int) (bool, bool) { hit := i >= at && i < at+times; return hit, hit && gone })
					if w.recorded != want.recorded {
						t.Errorf("killed %d times from reconcile %d on, status lost: %t: %s is in use, want %s", times, at, gone, w.recorded, want.recorded)
					}
				}
			}
		}
	}
}

// TestWaits is about what holds a rotation, and what is said of it.
func TestWaits(t *testing.T) {
	for _, test := range []struct {
		reason, busy string
		change       func(*world)
		phase        operatorv1alpha1.OperationPhase
		says         string
	}{
		{"something else is under way", "servers: 1 of 2 updated", func(*world) {}, "Preflight", "nothing is changed until this is resolved: servers: 1 of 2 updated"},
		{"cert-manager is away", "", func(w *world) { w.recorded.Also = 2 }, "Issuance", "it is not issued; nothing is published of it so far, so that an upgrade is made first if one is asked for"},
		{"the next one got lost, and all trust the rest", "", func(w *world) { w.recorded.Also, w.trusted[2] = 2, true }, "Trust", "it is not issued"},
		{"the next one got lost just before it signs", "", func(w *world) { w.recorded.Also, w.trusted[2] = 2, true }, "Reissue", "it is not issued"},
		{"a server does not trust it", "", func(w *world) { w.recorded.Also, w.issued[2] = 2, true }, "Trust", "one is not trusted"},
		{"trust was taken back just before", "", func(w *world) { w.recorded.Also, w.issued[2] = 2, true }, "Reissue", "one is not trusted"},
		{"a server shows the previous one", "", func(w *world) { w.recorded, w.trusted[2], w.shown = generation.InUse{Signing: 2, Also: 1}, true, 1 }, "Reissue", "another is shown"},
		{"it shows it again", "", func(w *world) { w.recorded, w.trusted[2], w.shown = generation.InUse{Signing: 2, Also: 1}, true, 1 }, "Withdrawal", "another is shown"},
		{"a server trusts the previous one", "", func(w *world) { w.recorded, w.trusted[2], w.shown = generation.InUse{Signing: 2, Also: 1}, true, 2 }, "Withdrawal", "it is still trusted"},
	} {
		w := newWorld(t, generation.InUse{Signing: 1})
		test.change(w)
		h := Handler{Name: "serving", CA: w, InUse: w.recorded, Desired: generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}, Busy: test.busy}
		h.Operation = h.Begin()
		h.Phase = test.phase
		driver := operation.Driver{Status: h.Operation, Recorded: h.DeepCopy()}
		v, progress := driver.Advance(t.Context(), h)
		if want := "the serving CA is rotated, from generation " + fmt.Sprint(w.recorded.Signing) + " to 2: " + test.says; progress != operation.UnderWay || v.Message != want || v.Reason != string(test.phase) || h.Phase != test.phase {
			t.Errorf("%s: in %s: %+v", test.reason, h.Phase, v)
		}
		if len(w.records) > 0 {
			t.Errorf("%s: recorded %v", test.reason, w.records)
		}
	}
}

// TestServersFirst has servers drop the previous CA before all others, where they load it once.
func TestServersFirst(t *testing.T) {
	w := newWorld(t, generation.InUse{Signing: 2, Also: 1})
	h := Handler{Name: "etcd", CA: w, InUse: w.recorded, Desired: generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}}
	h.Servers = func(context.Context) error { return errors.New("1 of 2 updated") }
	h.Operation = h.Begin()
	var phases []string
	for _, step := range h.Steps() {
		phases = append(phases, string(step.Phase))
	}
	if got := strings.Join(phases, " "); got != "Preflight Issuance Trust Reissue Server Withdrawal" {
		t.Error(got)
	}
	h.Phase = operatorv1alpha1.PhaseServer
	driver := operation.Driver{Status: h.Operation, Recorded: h.DeepCopy()}
	if v, _ := driver.Advance(t.Context(), h); !strings.HasSuffix(v.Message, "1 of 2 updated") || h.Phase != operatorv1alpha1.PhaseServer {
		t.Errorf("%+v", v)
	}
	w.shown = 1
	if v, _ := driver.Advance(t.Context(), h); !strings.HasSuffix(v.Message, "another is shown") {
		t.Errorf("a member shows the previous one: %+v", v)
	}
}

// TestStepsKeepThePresentOne has a permission that is taken back in the middle not leave an
// operation in a phase that it does not have.
func TestStepsKeepThePresentOne(t *testing.T) {
	for _, phase := range []operatorv1alpha1.OperationPhase{"Preflight", "Issuance", "Trust", "Reissue", "Withdrawal"} {
		for _, u := range []generation.InUse{{Signing: 1}, {Signing: 1, Also: 2}, {Signing: 2, Also: 1}, {Signing: 2}} {
			h := Handler{Name: "client", InUse: u, Desired: generation.Desired{Generation: 2}, Operation: &operatorv1alpha1.Operation{Phase: phase}}
			if !slices.ContainsFunc(h.Steps(), func(s operation.Step) bool { return s.Phase == phase }) {
				t.Errorf("%s in use: phase %s is not among the steps", u, phase)
			}
		}
	}
}

// TestPutOff has a rotation give way as long as nothing is published of another generation, and
// leave nothing behind then.
func TestPutOff(t *testing.T) {
	next := generation.InUse{Signing: 1, Also: 2}
	for _, test := range []struct {
		reason   string
		phase    operatorv1alpha1.OperationPhase
		inUse    generation.InUse
		unissued bool
		gives    bool
		records  string
	}{
		{"nothing has begun", "Preflight", generation.InUse{Signing: 1}, false, true, ""},
		{"one that waited to be dropped goes on", "Preflight", next, false, true, ""},
		{"cert-manager is away", "Issuance", next, true, true, "1"},
		{"it is issued", "Issuance", next, false, false, ""},
		{"the new one signs", "Reissue", generation.InUse{Signing: 2, Also: 1}, false, false, ""},
	} {
		w := newWorld(t, test.inUse)
		w.trusted = map[int32]bool{}
		h := Handler{Name: "client", CA: w, InUse: test.inUse, Unissued: test.unissued, Operation: &operatorv1alpha1.Operation{Phase: test.phase}}
		if h.GivesWay() != test.gives {
			t.Errorf("%s: it gives way: %t", test.reason, h.GivesWay())
		}
		if err := h.PutOff(t.Context()); err != nil || strings.Join(w.records, " ") != test.records {
			t.Errorf("%s: recorded %v, %v", test.reason, w.records, err)
		}
	}
}

// TestLost has a next generation whose key is lost be replaced by a later one, and a rotation
// to it end.
func TestLost(t *testing.T) {
	next := generation.InUse{Signing: 1, Also: 2}
	h := Handler{Name: "serving", InUse: next, Lost: true, Desired: generation.Desired{Generation: 2, Replaceable: 1, Dropped: 1}, Operation: &operatorv1alpha1.Operation{Phase: "Trust", To: "serving 2"}}
	if h.Due() || !h.Outdated() {
		t.Error("it continues with another key")
	}
	h.Desired.Generation = 3
	if !h.Due() || !h.Outdated() {
		t.Error("the rotation to the lost one continues")
	}
	if h.Operation = h.Begin(); h.To != "serving 3" || h.Outdated() {
		t.Errorf("%+v", h.Operation)
	}
	w := newWorld(t, next)
	h.CA, h.Phase = w, operatorv1alpha1.PhaseIssuance
	if v := h.issue(t.Context()); v.Complete() || strings.Join(w.records, " ") != "1,3" {
		t.Errorf("recorded %v, %+v", w.records, v)
	}
}
