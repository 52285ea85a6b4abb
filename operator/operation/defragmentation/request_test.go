package defragmentation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operation"
)

// TestRequested has members defragmented once that a person has asked for, whatever is free
// of their files and whenever the maintenance window is open.
func TestRequested(t *testing.T) {
	for _, test := range []struct {
		reason  string
		members int
		after   time.Duration // the beginning
		member  string
		change  func(*fleet)
		want    string
	}{
		{"all", 3, 0, "", nil, "m1 m2 m0"},
		{"one", 3, 0, "m2", nil, "m2"},
		{"the leader", 3, 0, "m0", nil, "m0"},
		{"a single one", 1, 0, "", nil, "m0"},
		{"the window is closed", 3, 0, "", func(f *fleet) { f.window = hours(4) }, "m1 m2 m0"},
		{"a little later", 3, 5 * time.Minute, "m1", nil, "m1"},
		{"one of the day before yesterday", 3, -48 * time.Hour, "", nil, ""},
		{"one that there is not", 3, 0, "m9", nil, ""},
		{"one was defragmented since", 3, -time.Minute, "", func(f *fleet) { f.etcd.Members[1].DefragmentedTime = &metav1.Time{Time: f.now.Add(-time.Second)} }, "m2 m0"},
		{"one fails", 3, 0, "m1", func(f *fleet) { f.refusal = errors.New("no space left on device") }, "m1"},
		{"a member is down", 3, 0, "", func(f *fleet) { f.state.Members[2].Err = errors.New("down") }, ""},
		{"none is requested", 3, 0, "", func(f *fleet) { f.request = contract.DefragmentRequest{} }, ""},
	} {
		f := newFleet(test.members)
		f.request = contract.DefragmentRequest{Time: f.now.Add(test.after), Member: test.member}
		if test.change != nil {
			test.change(f)
		}
		for range 600 {
			if f.operation != nil {
				if _, progress := f.reconcile(t, false, nil); progress != operation.UnderWay {
					f.operation = nil
				}
			} else if f.handler().Due() {
				f.operation = &operatorv1alpha1.Operation{}
				operation.Enter(f.operation, operatorv1alpha1.PhasePreflight, f.now)
			}
			f.now = f.now.Add(3 * time.Second)
		}
		if got := strings.Join(f.called, " "); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestHeldRequest is about what is said of a request that is not begun.
func TestHeldRequest(t *testing.T) {
	for _, test := range []struct {
		reason  string
		after   time.Duration
		member  string
		says    string
		begins  time.Duration
		problem string
	}{
		{"now", 0, "", "a person has asked for m0, m1, m2 to be defragmented, which begins when", 0, ""},
		{"later", time.Hour, "m1", "a person has asked for m1 to be defragmented at 2030-01-02T04:04:05Z", time.Hour, ""},
		{"long ago", -24 * time.Hour, "", "", 0, ""},
		{"of no member", 0, "m9", "", 0, `etcd has no member "m9"`},
		{"of no member any more", -24 * time.Hour, "m9", "", 0, ""},
	} {
		f := newFleet(3)
		f.request = contract.DefragmentRequest{Time: f.now.Add(test.after), Member: test.member}
		message, begins := f.handler().HeldRequest()
		if !strings.HasPrefix(message, test.says) || (message == "") != (test.says == "") || !begins.IsZero() && begins.Sub(f.now) != test.begins || begins.IsZero() && test.begins > 0 {
			t.Errorf("%s: %q, begins %s", test.reason, message, begins)
		}
		if got := f.handler().RequestProblem(); got != test.problem {
			t.Errorf("%s: %q", test.reason, got)
		}
	}
	if message, _ := newFleet(3).handler().HeldRequest(); message != "" || slices.Contains(newFleet(3).handler().candidates(), "m0") {
		t.Errorf("without a request: %q", message)
	}
}
