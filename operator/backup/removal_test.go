package backup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// unremoved is what is said of old backups that can't be removed for two hours, and are tried to be
// again in a while.
func unremoved(in time.Duration) *operatorv1alpha1.PruneFailure {
	return &operatorv1alpha1.PruneFailure{Since: *before(2 * time.Hour), NextAttempt: metav1.NewTime(now.Add(in)), Message: "a lock"}
}

// TestRemovesAgain removes old backups again that could not be, after all else that is asked for
// but other verifications.
func TestRemovesAgain(t *testing.T) {
	const again = "prune b uid-b 2026-03-01T10:19:30Z"
	for _, test := range []struct {
		reason  string
		all     []*object
		failure *operatorv1alpha1.PruneFailure
		want    string
	}{
		{"it did not fail", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, nil, ""},
		{"it is not time", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(time.Minute), ""},
		{"it is time", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(-time.Minute), again},
		{"another clock has said when", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(24 * time.Hour), "prune b uid-b 2026-03-02T10:20:30Z"},
		{"one waits", []*object{made("b", operatorv1alpha1.BackupCompleted, 2), made("c", operatorv1alpha1.BackupPending, 1)}, unremoved(-time.Minute), "save c uid-c"},
		{"one is to be verified again", []*object{made("a", operatorv1alpha1.BackupCompleted, 3, asks("1")), made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(-time.Minute), again},
		{"there is none", nil, unremoved(-time.Minute), ""},
	} {
		got := ""
		if task := Choose(test.all, operatorv1alpha1.BackupStatus{Pruned: "b", PruneFailure: test.failure}, "one", now); task != nil {
			got = task.ID()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestNotRemoved counts from the first of the attempts that failed.
func TestNotRemoved(t *testing.T) {
	var status operatorv1alpha1.BackupStatus
	NotRemoved(&status, "a lock", now)
	NotRemoved(&status, "another lock", now.Add(time.Hour))
	if f := status.PruneFailure; !f.Since.Time.Equal(now) || !f.NextAttempt.Time.Equal(now.Add(2*time.Hour)) || f.Message != "another lock" {
		t.Errorf("%+v", f)
	}
}
