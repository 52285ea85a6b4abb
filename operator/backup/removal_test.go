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
// but other verifications. Once that is begun, all else waits for it: another Job would take the place
// of the one that knows which backups it has removed.
func TestRemovesAgain(t *testing.T) {
	const again, first = "prune b uid-b 2026-03-01T10:19:30Z", "prune b uid-b"
	others := []*object{made("b", operatorv1alpha1.BackupCompleted, 2), made("c", operatorv1alpha1.BackupPending, 1), made("a", operatorv1alpha1.BackupCompleted, 3, deleted)}
	for _, test := range []struct {
		reason  string
		all     []*object
		failure *operatorv1alpha1.PruneFailure
		want    string
		begun   string
		pruned  string
	}{
		{"it did not fail", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, nil, "", "", "b"},
		{"it is not time", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(time.Minute), "", "", "b"},
		{"it is time", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(-time.Minute), again, "", "b"},
		{"another clock has said when", []*object{made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(24 * time.Hour), "prune b uid-b 2026-03-02T10:20:30Z", "", "b"},
		{"one waits", []*object{made("b", operatorv1alpha1.BackupCompleted, 2), made("c", operatorv1alpha1.BackupPending, 1)}, unremoved(-time.Minute), "save c uid-c", "", "b"},
		{"one is to be verified again", []*object{made("a", operatorv1alpha1.BackupCompleted, 3, asks("1")), made("b", operatorv1alpha1.BackupCompleted, 2)}, unremoved(-time.Minute), again, "", "b"},
		{"there is none", nil, unremoved(-time.Minute), "", "", "b"},
		{"one waits, and another one is deleted", others, unremoved(-time.Minute), "delete a uid-a", "", "b"},
		{"it is begun", others, unremoved(-time.Minute), again, again, "b"},
		{"it was done", others, unremoved(time.Minute), "delete a uid-a", again, "b"},
		{"it is begun for the first time", others, nil, first, first, "a"},
		{"it was done for another one", others, nil, "delete a uid-a", "prune a uid-a", "a"},
	} {
		got := ""
		if task := Choose(test.all, operatorv1alpha1.BackupStatus{Pruned: test.pruned, PruneFailure: test.failure}, "one", test.begun, now); task != nil {
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
