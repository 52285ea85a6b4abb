package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// attemptAfter is how long after the first one that failed another backup is taken that
// something waits for, and attemptAtLatest after any other one.
const (
	attemptAfter    = 5 * time.Minute
	attemptAtLatest = time.Hour
	// mostAttempts is how many there are, an hour apart.
	mostAttempts = 999
)

// Needed is a backup that something waits for, such as an upgrade.
type Needed struct {
	// Prefix begins the names of all attempts to take it, of which each has a number. It
	// depends on nothing that a crash loses, so that two operators, or one that was killed,
	// take the same backup.
	Prefix string
	// Lineage is that of the data, empty while that is not known.
	Lineage string
	// Verified is true when the backup has to be verified.
	Verified bool
	// Fresh is how long ago the backup may have been taken at most, zero for any time: what
	// was written since is not in it. Each time that one was older when it was complete, the
	// next one may be older by as much, or else a verification that takes longer would have
	// one taken after the other without end.
	Fresh time.Duration
}

// Wait is what is to be done about a backup that something waits for.
type Wait struct {
	// Done is the backup that was waited for, nil while there is none.
	Done *operatorv1alpha1.ClusterRegistryBackup
	// Create is the name of the one to create now, empty for none.
	Create string
	// Message says what is waited for, and After when to come back, zero for whenever
	// something changes.
	Message string
	After   time.Duration
	// Failing is true when the last attempt failed.
	Failing bool
}

// Await says what is to be done about a backup that something waits for, by the backups of
// the registry. One that failed is followed by another one some minutes later.
func (n Needed) Await(all []*operatorv1alpha1.ClusterRegistryBackup, now time.Time) Wait {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *operatorv1alpha1.ClusterRegistryBackup) int {
		return cmp.Compare(n.attempt(a.Name), n.attempt(b.Name))
	})
	var failed, good *operatorv1alpha1.ClusterRegistryBackup
	attempts, allowed := 0, time.Duration(0)
	for _, b := range sorted {
		attempt := n.attempt(b.Name)
		attempts = max(attempts, attempt)
		switch {
		case attempt == 0 || b.DeletionTimestamp != nil:
		case !b.Status.Phase.Ended():
			return Wait{Message: fmt.Sprintf("backup %s is %s", b.Name, said(b))}
		case n.meets(b):
			good, failed, allowed = b, nil, allowed+n.Fresh
		default:
			failed = b
		}
	}
	if good != nil && (n.Fresh == 0 || now.Sub(taken(good)) <= allowed) {
		return Wait{Done: good}
	}
	if attempts == mostAttempts {
		return Wait{Failing: true, Message: fmt.Sprintf("there is ClusterRegistryBackup %s%d, after which no other one is taken: delete it", n.Prefix, attempts)}
	}
	out := Wait{Create: n.Prefix + strconv.Itoa(attempts+1), Message: "a backup is being created"}
	if good != nil {
		out.Message = fmt.Sprintf("backup %s was taken at %s, and what was written since is not in it: another one is being created", good.Name, stamp(metav1.NewTime(taken(good))))
	}
	if failed == nil {
		return out
	}
	return n.afterFailure(out, failed, attempts, now)
}

// meets reports whether a backup is as it has to be, but for its age.
func (n Needed) meets(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return b.Status.Phase == operatorv1alpha1.BackupCompleted && HasContent(b) && n.Lineage != "" && b.Status.Lineage == n.Lineage && (b.Status.VerifiedTime != nil || !n.Verified)
}

// taken is when a backup was taken, or, where that is not known, when it was asked for.
func taken(b *operatorv1alpha1.ClusterRegistryBackup) time.Time {
	if b.Status.TakenTime == nil {
		return b.CreationTimestamp.Time
	}
	return b.Status.TakenTime.Time
}

// afterFailure says when the next backup is taken after the last one failed.
func (n Needed) afterFailure(out Wait, failed *operatorv1alpha1.ClusterRegistryBackup, attempts int, now time.Time) Wait {
	out.Failing = true
	ended := failed.CreationTimestamp
	if at := failed.Status.CompletionTime; at != nil {
		ended = *at
	}
	pause := min(time.Duration(attempts)*attemptAfter, attemptAtLatest)
	next := ended.Add(pause)
	if next.After(now) && !next.After(now.Add(pause+ahead)) { // else a clock was wrong
		out.Create, out.After = "", next.Sub(now)
	}
	out.Message = fmt.Sprintf("backup %s is %s; the next one is taken at %s", failed.Name, said(failed), stamp(metav1.NewTime(next)))
	return out
}

// attempt returns the number of an attempt by its name, zero when it is none, or one that is
// not reached: what someone else has made must not lead to a name that is not allowed.
func (n Needed) attempt(name string) int {
	number, is := strings.CutPrefix(name, n.Prefix)
	if !is {
		return 0
	}
	attempt, err := strconv.Atoi(number)
	if err != nil || attempt < 1 || attempt > mostAttempts {
		return 0
	}
	return attempt
}

// said is the phase of a backup with its message.
func said(b *operatorv1alpha1.ClusterRegistryBackup) string {
	text := string(orPending(b.Status.Phase))
	if b.Status.Message != "" {
		text += ": " + b.Status.Message
	}
	return text
}

// NewestVerified returns the backup of a lineage that was taken last among those that were
// verified, nil when there is none.
func NewestVerified(all []*operatorv1alpha1.ClusterRegistryBackup, lineage string) *operatorv1alpha1.ClusterRegistryBackup {
	var newest *operatorv1alpha1.ClusterRegistryBackup
	for _, b := range all {
		if b.Status.Phase != operatorv1alpha1.BackupCompleted || b.Status.VerifiedTime == nil || b.Status.TakenTime == nil || lineage == "" || b.Status.Lineage != lineage || !HasContent(b) {
			continue
		}
		if newest == nil || newest.Status.TakenTime.Before(b.Status.TakenTime) {
			newest = b
		}
	}
	return newest
}
