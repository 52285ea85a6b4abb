package verdict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestVerdict is about how verdicts are derived from each other.
func TestVerdict(t *testing.T) {
	waiting := Waiting("CertificateNotReady", "Certificate %s does not exist yet", "a")
	failed := waiting
	failed.Err = errors.New("no route")
	for _, test := range []struct {
		reason string
		got    Verdict
		want   Verdict
		usable bool
	}{
		{"the zero value is done", Verdict{}, Verdict{State: Done}, true},
		{"what is waited for is not there", waiting, Verdict{State: Blocked, Reason: "CertificateNotReady", Message: "Certificate a does not exist yet"}, false},
		{"it is there nevertheless", Waiting("R", "m").DegradedIf(true), Verdict{State: Degraded, Reason: "R", Message: "m"}, true},
		{"the last word counts", Waiting("R", "m").DegradedIf(true).DegradedIf(false), Verdict{State: Blocked, Reason: "R", Message: "m"}, false},
		{"later", Waiting("R", "m").In(time.Minute), Verdict{State: Blocked, Reason: "R", Message: "m", After: time.Minute}, false},
		{"an error stays one", failed.DegradedIf(true).In(time.Second), Verdict{State: Degraded, Reason: failed.Reason, Message: failed.Message, After: time.Second, Err: failed.Err}, true},
		{"nothing may be changed", Waiting("R", "m").DegradedIf(true).AsReadOnly(), Verdict{State: ReadOnly, Reason: "R", Message: "m"}, false},
		{"which nothing takes back", Waiting("R", "m").AsReadOnly().DegradedIf(true), Verdict{State: ReadOnly, Reason: "R", Message: "m"}, false},
		{"done is not degraded", Verdict{}.DegradedIf(true), Verdict{}, true},
		{"a note", Verdict{}.Note("CAExpiring", "soon"), Verdict{Reason: "CAExpiring", Message: "soon"}, true},
		{"two notes", Verdict{}.Note("A", "a").Note("B", "b"), Verdict{Reason: "B", Message: "a; b"}, true},
	} {
		if test.got != test.want || test.got.Usable() != test.usable || test.got.Complete() != (test.want.State == Done) {
			t.Errorf("%s: %+v", test.reason, test.got)
		}
	}
}

// taken is an error that a person has to do something about.
type taken struct{}

func (taken) Error() string  { return "the name is taken" }
func (taken) Reason() string { return "NotOwned" }

// TestFailed tells errors that are tried again from those that a person resolves.
func TestFailed(t *testing.T) {
	unexpected := errors.New("no route")
	if got, want := Failed(unexpected), (Verdict{State: Blocked, Reason: "InternalError", Message: "no route", Err: unexpected}); got != want {
		t.Errorf("unexpected: %+v", got)
	}
	if got, want := Failed(fmt.Errorf("apply: %w", taken{})), (Verdict{State: Blocked, Reason: "NotOwned", Message: "apply: the name is taken"}); got != want {
		t.Errorf("expected: %+v", got)
	}
}

func TestBounded(t *testing.T) {
	if got := Bounded(strings.Repeat("x", 40000)); len(got) > 32768 || len(got) < 8192 {
		t.Errorf("a condition can't hold %d characters, or could hold more", len(got))
	}
	if got := Bounded("short"); got != "short" {
		t.Error(got)
	}
}
