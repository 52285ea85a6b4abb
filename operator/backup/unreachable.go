package backup

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

const (
	// pauseFirst is how long after an attempt to reach a store the next one begins, pauseMost how
	// long once the store was away for that long: within a minute of its return it is found.
	pauseFirst = 15 * time.Second
	pauseMost  = time.Minute
	// LetGo is how long a store that does not delete a backup holds the deletion of its object.
	LetGo = 10 * time.Minute
)

// Reach notes in the status of a registry whether its store can be reached, by what came of the
// present Job, and returns what is to be made of that: a Job that could not reach the store is
// waited for like one that runs, and is done again when it is time. What is being deleted
// does not wait for a store without end, and who has asked for another verification gets an answer.
func Reach(status *operatorv1alpha1.BackupStatus, t Task, o Outcome, now time.Time) Outcome {
	switch o.State {
	case Running:
		if status.StoreUnreachable != nil {
			status.StoreUnreachable.NextAttempt = nil
		}
		return o
	case Unreachable:
	default:
		status.StoreUnreachable = nil
		return o
	}
	if at := t.Object.DeletionTimestamp; t.Request != "" || at != nil && (t.Step != Delete || now.Sub(at.Time) > LetGo) {
		o.State = Failed
		return o
	}
	away := status.StoreUnreachable
	if away == nil {
		away = &operatorv1alpha1.StoreUnreachable{Since: metav1.NewTime(now)}
		if o.ended.Before(now) {
			away.Since = metav1.NewTime(o.ended)
		}
		status.StoreUnreachable = away
	}
	// Reckoned once for each attempt, and by one clock: that of kube-controller-manager, which says
	// when a Job has ended, may be another.
	if away.NextAttempt == nil || away.NextAttempt.Sub(now) > pauseMost {
		away.NextAttempt = new(metav1.NewTime(now.Add(min(max(now.Sub(away.Since.Time), pauseFirst), pauseMost))))
	}
	o.State, away.Message = Running, o.Message
	if !now.Before(away.NextAttempt.Time) {
		o.State, away.NextAttempt = Lost, nil // it begins
	}
	o.Message = unreachable(*away)
	return o
}

// unreachable says since when a store can't be reached, and when that is tried next.
func unreachable(s operatorv1alpha1.StoreUnreachable) string {
	next := "another attempt is in progress"
	if s.NextAttempt != nil {
		next = "the operator will retry at " + stamp(*s.NextAttempt)
	}
	return fmt.Sprintf("the store can't be reached since %s, and %s: %s", stamp(s.Since), next, s.Message)
}
