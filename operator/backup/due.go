package backup

import (
	"fmt"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/schedule"
)

const (
	// retryAfter is how long after one that failed a backup is taken beside the schedule,
	// which may be a day or a week away.
	retryAfter = time.Hour
	// slack is how much longer than two periods no backup may succeed: each takes a while.
	slack = 10 * time.Minute
	// ahead is how far ahead of this clock a time may be that another operator has written.
	ahead = time.Minute
)

// Due returns the time in the schedule of the backup that is to begin now; zero when none
// is. Of several that were missed the last one counts. It depends on nothing that a crash
// loses, so that two operators, or one that was killed, come to the same time, and by it to
// the same name.
func Due(s schedule.Schedule, status operatorv1alpha1.BackupStatus, now time.Time) time.Time {
	last := s.Last(now)
	if retry := retryTime(status); retry.After(last) && !retry.After(now) {
		last = retry
	}
	if last.After(begun(status, now)) {
		return last
	}
	return time.Time{}
}

// begun returns the time of the backup that was begun last; zero when there was none, or
// the clock that wrote it was wrong: no backup would be due until that time comes.
func begun(status operatorv1alpha1.BackupStatus, now time.Time) time.Time {
	if status.LastScheduleTime == nil || status.LastScheduleTime.After(now.Add(ahead)) {
		return time.Time{}
	}
	return status.LastScheduleTime.Time
}

// retryTime returns when a backup is due since the last one failed; zero when it did not.
func retryTime(status operatorv1alpha1.BackupStatus) time.Time {
	failure := status.LastFailure
	if failure == nil || status.LastSuccess != nil && !status.LastSuccess.Time.Before(&failure.Time) {
		return time.Time{}
	}
	return failure.Time.Add(retryAfter).Truncate(time.Minute)
}

// Next returns when the next backup is due after now; zero when there is none.
func Next(s schedule.Schedule, status operatorv1alpha1.BackupStatus, now time.Time) time.Time {
	next := s.Next(now)
	if retry := retryTime(status); retry.After(now) && (retry.Before(next) || next.IsZero()) {
		return retry
	}
	return next
}

// Overdue reports whether no backup has succeeded for two periods of the schedule. One that
// never had a backup is not overdue: it waits for the first one, or that one failed.
func Overdue(s schedule.Schedule, status operatorv1alpha1.BackupStatus, now time.Time) bool {
	if status.LastSuccess == nil {
		return false
	}
	first := s.Next(status.LastSuccess.Time.Time)
	if first.IsZero() {
		return false
	}
	second := s.Next(first)
	return !second.IsZero() && now.After(second.Add(slack))
}

// Names returns the names that the backup of a time in the schedule may have. It has the second
// one where the first is that of a backup of other data, as when etcd was recovered a moment
// ago: the first backup of what it has since is not to wait for the next time.
func Names(registry string, at time.Time, lineage string) []string {
	name := fmt.Sprintf("%s-%s", registry, at.UTC().Format("20060102-1504"))
	return []string{name, name + "-" + lineage[:min(len(lineage), 8)]}
}
