package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// away returns what comes of a Job that could not reach the store, and ended at a time.
func away(ended time.Time) Outcome {
	job, pods := jobOf(batchv1.JobFailed, 75, "error: store s3://b: no route\n")
	job.Status.Conditions[0].LastTransitionTime = metav1.NewTime(ended)
	return Read(job, pods)
}

// TestStoreAway has a store be away for five minutes, and each attempt take a second. The next one
// begins within 30 s of the first, and within a minute of any other one, but not at once.
func TestStoreAway(t *testing.T) {
	status := operatorv1alpha1.BackupStatus{LastSuccess: success(time.Hour)}
	task := Task{Step: Save, Object: made("b", operatorv1alpha1.BackupSaving, time.Minute), Name: "b"}
	schedule := times(t, "0 * * * *", "")
	begun, end := now, now.Add(5*time.Minute)
	var pauses []time.Duration
	for at := now; at.Before(end); at = at.Add(time.Second) {
		if at.Before(begun.Add(time.Second)) {
			Reach(&status, task, Outcome{}, at)
			continue
		}
		o := Reach(&status, task, away(begun.Add(time.Second)), at)
		if o.State != Running && o.State != Lost {
			t.Fatalf("it is given up after %s: %+v", at.Sub(now), o)
		}
		found, since := Judge(operatorv1alpha1.Backup{}, schedule, status, nil, at), stamp(metav1.NewTime(now.Add(time.Second)))
		next := "another attempt is in progress"
		if o.State == Running {
			next = "the operator will retry at " + stamp(*status.StoreUnreachable.NextAttempt)
		}
		if says := fmt.Sprintf("can't be reached since %s, and %s: store s3://b: no route", since, next); found.Good || found.Reason != operatorv1alpha1.ReasonStoreUnreachable ||
			!strings.Contains(found.Message, says) || !strings.Contains(found.Message, "the last backup that succeeded") || !strings.Contains(o.Message, says) {
			t.Fatalf("after %s it says %+v, and %q; want %q", at.Sub(now), found, o.Message, says)
		}
		if o.State == Lost {
			pauses, begun = append(pauses, at.Sub(begun)), at
		}
	}
	if len(pauses) < 5 || len(pauses) > 10 || pauses[0] > 30*time.Second {
		t.Errorf("attempts are made after %v", pauses)
	}
	for i, pause := range pauses {
		if pause < 10*time.Second || pause > 61*time.Second || i > 0 && pause < pauses[i-1] {
			t.Errorf("attempts are made after %v", pauses)
		}
	}
	Reach(&status, task, Outcome{}, end)
	if found := Judge(operatorv1alpha1.Backup{}, schedule, status, nil, end); found.Reason != operatorv1alpha1.ReasonStoreUnreachable || !strings.Contains(found.Message, "another attempt is in progress") {
		t.Errorf("in the next attempt it says %+v", found)
	}
	if o := Reach(&status, task, Outcome{State: Succeeded}, end); o.State != Succeeded || status.StoreUnreachable != nil {
		t.Errorf("it is back: %+v, and the status has %+v", o, status.StoreUnreachable)
	}
}

// TestReach is about what is not tried again every minute: what the store refuses, and what is
// being deleted meanwhile.
func TestReach(t *testing.T) {
	saving := func() *object { return made("b", operatorv1alpha1.BackupSaving, time.Minute) }
	gone := func(age time.Duration) *object {
		return made("b", operatorv1alpha1.BackupCompleted, time.Hour, func(b *object) { b.DeletionTimestamp = before(age) })
	}
	for reason, test := range map[string]struct {
		task    Task
		outcome Outcome
		want    State
	}{
		"it is refused":                        {Task{Step: Save, Object: saving()}, Read(jobOf(batchv1.JobFailed, 1, "error: refused")), Failed},
		"it is damaged":                        {Task{Step: Verify, Object: saving()}, Read(jobOf(batchv1.JobFailed, 65, "error: hash")), Damaged},
		"it is away":                           {Task{Step: Save, Object: saving()}, away(now), Running},
		"another clock is an hour ahead":       {Task{Step: Save, Object: saving()}, away(now.Add(time.Hour)), Running},
		"another clock is an hour late":        {Task{Step: Save, Object: saving()}, away(now.Add(-time.Hour)), Running},
		"it is verified by request":            {Task{Step: Verify, Object: saving(), Request: "1"}, away(now), Failed},
		"its object is deleted":                {Task{Step: Save, Object: gone(time.Second)}, away(now), Failed},
		"its content is deleted":               {Task{Step: Delete, Object: gone(time.Second)}, away(now), Running},
		"its content is not deleted for hours": {Task{Step: Delete, Object: gone(time.Hour)}, away(now), Failed},
	} {
		status := operatorv1alpha1.BackupStatus{}
		if o := Reach(&status, test.task, test.outcome, now); o.State != test.want {
			t.Errorf("%s: %+v, want %d", reason, o, test.want)
		}
		if next := status.StoreUnreachable; next != nil && (next.NextAttempt.After(now.Add(pauseMost)) || !next.NextAttempt.After(now)) {
			t.Errorf("%s: it is tried again at %s", reason, next.NextAttempt)
		}
	}
	damaged := operatorv1alpha1.BackupStatus{LastFailure: failure(time.Minute), StoreUnreachable: &operatorv1alpha1.StoreUnreachable{Since: *before(time.Minute)}}
	if found := Judge(operatorv1alpha1.Backup{}, times(t, "0 * * * *", ""), damaged, []*object{made("lost", operatorv1alpha1.BackupDamaged, time.Minute)}, now); found.Reason != operatorv1alpha1.ReasonVerificationFailed || !strings.Contains(found.Message, "can't be reached") {
		t.Errorf("the last backup is damaged, and the store is away: %+v", found)
	}
}

// TestDeletedWhileAway lets what was begun wait for a deletion while the store is away: else an
// object would be held as long as that.
func TestDeletedWhileAway(t *testing.T) {
	all := []*object{made("a", operatorv1alpha1.BackupCompleted, time.Hour, deleted, withContent), made("b", operatorv1alpha1.BackupSaving, time.Minute)}
	status := operatorv1alpha1.BackupStatus{}
	if task := Choose(all, status, "one", "", now); task.Step != Save {
		t.Errorf("it is %+v", task)
	}
	status.StoreUnreachable = &operatorv1alpha1.StoreUnreachable{}
	if task := Choose(all, status, "one", "", now); task.Step != Save {
		t.Errorf("while an attempt is in progress it is %+v", task)
	}
	status.StoreUnreachable.NextAttempt = before(-time.Minute)
	if task := Choose(all, status, "one", "", now); task.Step != Delete || task.Name != "a" {
		t.Errorf("while the store is away it is %+v", task)
	}
}
