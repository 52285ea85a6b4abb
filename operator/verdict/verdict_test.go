package verdict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
	for reason, err := range map[string]error{
		"HostRefused":   apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota")),
		"InternalError": apierrors.NewInternalError(errors.New("failed calling webhook")),
	} {
		if got := Failed(fmt.Errorf("apply: %w", err)); got.Reason != reason || !errors.Is(got.Err, err) {
			t.Errorf("%v: %+v", err, got)
		}
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

// TestImmutable tells a change of what can't be changed from what the host would refuse of a new
// object as well.
func TestImmutable(t *testing.T) {
	kind := schema.GroupKind{Group: "batch", Kind: "Job"}
	template := field.NewPath("spec", "template")
	for reason, test := range map[string]struct {
		err  error
		want bool
	}{
		"a change":              {apierrors.NewInvalid(kind, "j", apivalidation.ValidateImmutableField("a", "b", template)), true},
		"an older host":         {apierrors.NewInvalid(kind, "j", nil), true},
		"a request above limit": {apierrors.NewInvalid(kind, "j", field.ErrorList{field.Invalid(template, "128Mi", "must be less than or equal to memory limit of 64Mi")}), false},
		"something else":        {apierrors.NewConflict(schema.GroupResource{}, "j", nil), false},
		"nothing":               {nil, false},
	} {
		if got := Immutable(test.err); got != test.want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}
