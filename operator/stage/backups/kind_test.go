package backups

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// unlisted is a host cluster that lists nothing.
type unlisted struct {
	client.Reader
	err error
}

func (u unlisted) List(context.Context, client.ObjectList, ...client.ListOption) error { return u.err }

// TestBackupsUnreadable has an operator that is newer than its CustomResourceDefinitions, or its
// rights: it says so, and watches backups once, as soon as it can read them.
func TestBackupsUnreadable(t *testing.T) {
	watched, fails := 0, error(nil)
	kind := &Kind{Watch: func() error { watched++; return fails }}
	for reason, refusal := range map[string]error{
		"they are not served":   &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ClusterRegistryBackup"}},
		"they are served later": apierrors.NewNotFound(schema.GroupResource{Resource: "clusterregistrybackups"}, ""),
		"it has no right":       apierrors.NewForbidden(schema.GroupResource{Resource: "clusterregistrybackups"}, "", nil),
	} {
		err := kind.Readable(t.Context(), unlisted{err: refusal}, "team")
		if !errors.As(err, new(*unreadableError)) || !strings.Contains(err.Error(), "apply the CustomResourceDefinitions and the roles of the operator's release") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if err := kind.Readable(t.Context(), unlisted{err: errors.New("a bad day")}, "team"); err == nil || errors.As(err, new(*unreadableError)) || watched != 0 {
		t.Errorf("on a bad day: %v, watched %d times", err, watched)
	}
	fails = errors.New("the cache has ended")
	if err := kind.Readable(t.Context(), unlisted{}, "team"); err == nil || watched != 1 {
		t.Errorf("not watched: %v", err)
	}
	fails = nil
	for range 2 {
		if err := kind.Readable(t.Context(), unlisted{}, "team"); err != nil || watched != 2 {
			t.Errorf("readable: %v, watched %d times", err, watched)
		}
	}
}

// TestWithoutReadableBackups is about a registry of an operator that can't read backups: it says
// so, takes none, drops no key, and its operations wait as for any backup that fails. Then it can.
func TestWithoutReadableBackups(t *testing.T) {
	w := newBackupWorld(t, asked("mine"))
	s := w.scope()
	s.Observe(t.Context(), &unreadableError{errors.New("no matches for kind")})
	s.Run(t.Context())
	v := s.Found.Verdict
	if v.Complete() || v.Err != nil || v.Reason != operatorv1alpha1.ReasonBackupsUnreadable || v.After == 0 || !strings.Contains(v.Message, "no backup can be taken: the operator can't read ClusterRegistryBackups") {
		t.Errorf("the verdict is %+v", v)
	}
	if !s.Found.Unread || s.Found.task != nil || w.phases() != "mine " {
		t.Errorf("%+v, with %s", s.Found, w.phases())
	}
	if v := s.takeBefore(t.Context(), "fleet-snapshot-1"); v.Complete() || !strings.Contains(v.Message, "nothing was changed: a backup comes first") || !strings.Contains(v.Message, "spec.backup.suspend") {
		t.Errorf("before an upgrade: %+v", v)
	}
	if v := w.settle().Found.Verdict; w.phases() != good || !v.Complete() {
		t.Errorf("once they can be read: %s, %+v", w.phases(), v)
	}

	kind, host := &Kind{Watch: func() error { return nil }}, s.HostCluster
	host.Live = unlisted{err: &meta.NoKindMatchError{}}
	if all, err := kind.Settle(t.Context(), host, client.ObjectKeyFromObject(s.Registry), "it is gone"); err != nil || all != nil {
		t.Errorf("a deletion is held: %v, %v", all, err)
	}
}

// TestCorrectedBackup has a backup that could not be decoded, and can be now, say so no longer.
func TestCorrectedBackup(t *testing.T) {
	mine := asked("mine")
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Kept", LastTransitionTime: metav1.Now()}
	mine.Status.Conditions = []metav1.Condition{other, {Type: operatorv1alpha1.BackupConditionDecodable, Status: metav1.ConditionFalse, Reason: operatorv1alpha1.ReasonUndecodable, LastTransitionTime: metav1.Now()}}
	w := newBackupWorld(t, mine)
	w.reconcile()
	stored := &operatorv1alpha1.ClusterRegistryBackup{}
	if err := w.raw.Get(t.Context(), client.ObjectKeyFromObject(mine), stored); err != nil {
		t.Fatal(err)
	}
	if meta.FindStatusCondition(stored.Status.Conditions, operatorv1alpha1.BackupConditionDecodable) != nil || meta.FindStatusCondition(stored.Status.Conditions, "Other") == nil {
		t.Errorf("it says %+v", stored.Status.Conditions)
	}
}
