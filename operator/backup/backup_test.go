package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/schedule"
)

var now = time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC)

func times(t *testing.T, text, zone string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func before(age time.Duration) *metav1.Time {
	at := metav1.NewTime(now.Add(-age))
	return &at
}

func success(age time.Duration) *operatorv1alpha1.BackupSuccess {
	return &operatorv1alpha1.BackupSuccess{Time: *before(age), Name: "last", VerifiedTime: before(age)}
}

func failure(age time.Duration) *operatorv1alpha1.BackupFailure {
	return &operatorv1alpha1.BackupFailure{Time: *before(age), Name: "lost", Message: "no route"}
}

func TestDue(t *testing.T) {
	hour := 20*time.Minute + 30*time.Second // ago
	for _, test := range []struct {
		reason, schedule string
		status           operatorv1alpha1.BackupStatus
		due, next        string
		overdue          bool
	}{
		{"the first one is due at once", "0 * * * *", operatorv1alpha1.BackupStatus{}, "10:00", "11:00", false},
		{"the one of this hour was begun", "0 * * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(hour), LastSuccess: success(hour)}, "", "11:00", false},
		{"many were missed", "* * * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(48 * time.Hour), LastSuccess: success(48 * time.Hour)}, "10:20", "10:21", true},
		{"two periods have not passed", "0 * * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(hour), LastSuccess: success(80 * time.Minute)}, "", "11:00", false},
		{"two periods have passed", "0 * * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(hour), LastSuccess: success(100 * time.Minute)}, "", "11:00", true},
		{"two have, by less than a backup takes", "15 * * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(5*time.Minute + 30*time.Second), LastSuccess: success(70 * time.Minute)}, "", "11:15", false},
		{"it failed just now", "0 3 * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(8 * time.Hour), LastFailure: failure(time.Minute)}, "10:20 of the day", "11:19", false},
		{"it failed an hour ago", "0 3 * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(7*time.Hour + hour), LastFailure: failure(65 * time.Minute)}, "10:15", "03:00", false},
		{"it failed, and another one succeeded", "0 3 * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(7*time.Hour + hour), LastFailure: failure(65 * time.Minute), LastSuccess: success(time.Minute)}, "", "03:00", false},
		{"the retry was begun", "0 3 * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(5*time.Minute + 30*time.Second), LastFailure: failure(65 * time.Minute)}, "", "03:00", false},
		{"a clock was wrong", "0 * * * *", operatorv1alpha1.BackupStatus{LastScheduleTime: before(-1000 * time.Hour)}, "10:00", "11:00", false},
	} {
		if test.due == "10:20 of the day" {
			test.due = "03:00" // begun at 2:20, the one of 3:00 was missed
		}
		s := times(t, test.schedule, "")
		due := ""
		if at := Due(s, test.status, now); !at.IsZero() {
			due = at.Format("15:04")
		}
		if next := Next(s, test.status, now).Format("15:04"); due != test.due || next != test.next || Overdue(s, test.status, now) != test.overdue {
			t.Errorf("%s: due is %q, next %s, overdue %v; want %q, %s, %v", test.reason, due, next, Overdue(s, test.status, now), test.due, test.next, test.overdue)
		}
	}
	if name := Names("fleet", time.Date(2026, 3, 1, 4, 0, 0, 0, time.FixedZone("", 3600)), "l")[0]; name != "fleet-20260301-0300" {
		t.Errorf("the name is %s", name)
	}
}

// TestYears has a clock run through three years, with both changes of the clocks in each, and
// outages of the operator and of the store: no time of the schedule has two backups, none is
// lost while both run, and each has a name of its own.
func TestYears(t *testing.T) {
	s, status := times(t, "30 2 * * *", "Europe/Berlin"), operatorv1alpha1.BackupStatus{}
	names := map[string]bool{}
	count, longest := 0, time.Duration(0)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	last := begin
	for at := begin; at.Before(begin.AddDate(3, 0, 0)); at = at.Add(7 * time.Minute) {
		down, broken := at.Day() == 13 && at.Hour() < 12, at.Day() == 20
		if down {
			continue
		}
		due := Due(s, status, at)
		if due.IsZero() {
			continue
		}
		if due.After(at) || names[Names("fleet", due, "l")[0]] {
			t.Fatalf("at %s, %s is due", at, due)
		}
		names[Names("fleet", due, "l")[0]] = true
		scheduled, ended := metav1.NewTime(due), metav1.NewTime(at)
		status.LastScheduleTime = &scheduled
		if broken {
			status.LastFailure = &operatorv1alpha1.BackupFailure{Time: ended}
			continue
		}
		status.LastSuccess = &operatorv1alpha1.BackupSuccess{Time: ended}
		longest, last, count = max(longest, at.Sub(last)), at, count+1
	}
	// A night in March has no 2:30, and one in October two. A day on which the store is down has
	// none, and there is one within the hour after that, which may be that of the next day.
	if days := 3*365 + 1; count < days-36-3 || count > days+6 || longest > 50*time.Hour {
		t.Errorf("%d backups in %d days, the longest time without one is %s", count, days, longest)
	}
}

type object = operatorv1alpha1.ClusterRegistryBackup

// made returns an object that was created some time ago.
func made(name string, phase operatorv1alpha1.BackupPhase, age time.Duration, changes ...func(*object)) *object {
	b := &object{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: *before(age)}}
	b.Spec.DeletionPolicy = operatorv1alpha1.BackupDeletionPolicyRetain
	b.Status.Phase = phase
	if phase.Ended() {
		b.Status.CompletionTime, b.Status.TakenTime = before(age), before(age)
	}
	if phase != "" && phase != operatorv1alpha1.BackupPending {
		b.Status.Lineage = "one"
	}
	if phase == operatorv1alpha1.BackupCompleted || phase == operatorv1alpha1.BackupVerifying || phase == operatorv1alpha1.BackupDamaged {
		b.Status.Name, b.Status.Location = name, "s3://b/one/"+name
	}
	for _, change := range changes {
		change(b)
	}
	return b
}

func scheduled(b *object) {
	b.Annotations = map[string]string{operatorv1alpha1.AnnotationBackupReason: "Schedule"}
}
func verified(b *object) { b.Status.VerifiedTime = b.Status.CompletionTime }
func deleted(b *object) {
	b.DeletionTimestamp, b.Finalizers = before(time.Minute), []string{operatorv1alpha1.FinalizerBackup}
}
func withContent(b *object) { b.Spec.DeletionPolicy = operatorv1alpha1.BackupDeletionPolicyDelete }

// asks has a backup be verified again, which answered says that it was.
func asks(request string) func(*object) {
	return func(b *object) { b.Annotations = map[string]string{operatorv1alpha1.AnnotationVerify: request} }
}
func answered(request string) func(*object) {
	return func(b *object) { b.Status.VerifyRequest = request }
}
func forDeletion(b *object) {
	b.Annotations = map[string]string{operatorv1alpha1.AnnotationBackupReason: string(operatorv1alpha1.BackupDeletion)}
}
func of(lineage string) func(*object) { return func(b *object) { b.Status.Lineage = lineage } }

func TestChoose(t *testing.T) {
	const (
		pending   = operatorv1alpha1.BackupPending
		saving    = operatorv1alpha1.BackupSaving
		verifying = operatorv1alpha1.BackupVerifying
		completed = operatorv1alpha1.BackupCompleted
	)
	for _, test := range []struct {
		reason  string
		all     []*object
		pruned  string
		lineage string
		want    string
	}{
		{"there is none", nil, "", "one", ""},
		{"the oldest that waits", []*object{made("b", "", 2, scheduled), made("a", pending, 1)}, "", "one", "save b uid-b in one, skips true"},
		{"one that a person asked for skips nothing", []*object{made("a", pending, 1)}, "", "one", "save a uid-a in one, skips false"},
		{"etcd is not complete", []*object{made("a", pending, 1)}, "", "", ""},
		{"one was begun", []*object{made("a", pending, 3), made("b", saving, 2), made("c", "", 1)}, "", "two", "save b uid-b in one, skips false"},
		{"one is being verified", []*object{made("a", pending, 3), made("b", verifying, 2)}, "", "one", "verify b uid-b in one, skips false"},
		{"it is being verified and deleted", []*object{made("b", verifying, 2, deleted)}, "", "one", "verify b uid-b in one, skips false"},
		{"one succeeded", []*object{made("a", completed, 3), made("b", completed, 2), made("c", pending, 1)}, "a", "one", "prune b uid-b in one, skips false"},
		{"it was pruned after that", []*object{made("b", completed, 2), made("c", pending, 1)}, "b", "one", "save c uid-c in one, skips false"},
		{"one of another lineage succeeded", []*object{made("b", completed, 2)}, "", "two", ""},
		{"one is deleted", []*object{made("b", completed, 2, deleted), made("c", pending, 1)}, "", "two", "delete b uid-b in one, skips false"},
		{"one without content is deleted", []*object{made("b", operatorv1alpha1.BackupFailed, 2, deleted)}, "", "one", ""},
		{"one that was skipped is deleted", []*object{made("b", operatorv1alpha1.BackupSkipped, 2, deleted, func(b *object) { b.Status.Name, b.Status.Location = "a", "s3://b/one/a" })}, "", "one", ""},
		{"one is to be verified again", []*object{made("a", completed, 3, asks("1"), of("two")), made("b", completed, 2)}, "b", "one", "verify a uid-a 1 in two, skips false"},
		{"what people asked for waits for the schedule", []*object{made("a", pending, 3), made("b", completed, 2), made("c", pending, 1, scheduled)}, "b", "one", "save c uid-c in one, skips true"},
		{"and then the schedule for them", []*object{made("a", pending, 3), made("b", completed, 2, scheduled), made("c", pending, 1, scheduled)}, "b", "one", "save a uid-a in one, skips false"},
		{"the schedule waits for no one that is not there", []*object{made("b", completed, 2, scheduled), made("c", pending, 1, scheduled)}, "b", "one", "save c uid-c in one, skips true"},
		{"what a deletion waits for is the first", []*object{made("a", pending, 3), made("c", pending, 2, scheduled), made("d", pending, 1, forDeletion)}, "", "one", "save d uid-d in one, skips false"},
		{"what was never begun was no one's turn", []*object{made("a", pending, 3), made("b", completed, 2, scheduled), made("n", operatorv1alpha1.BackupFailed, 1, of("")), made("c", pending, 1, scheduled)}, "b", "one", "save a uid-a in one, skips false"},
		{"it waits for one that is to be taken", []*object{made("a", completed, 3, asks("1")), made("c", pending, 1)}, "a", "one", "save c uid-c in one, skips false"},
		{"one is to be verified again, of no present etcd", []*object{made("a", completed, 3, asks("1"))}, "a", "", "verify a uid-a 1 in one, skips false"},
		{"it was verified again", []*object{made("a", completed, 3, asks("1"), answered("1"))}, "a", "one", ""},
		{"a damaged one is to be, once more", []*object{made("a", operatorv1alpha1.BackupDamaged, 3, asks("2"), answered("1"))}, "", "one", "verify a uid-a 2 in one, skips false"},
		{"what has no content of its own is not", []*object{made("a", operatorv1alpha1.BackupSkipped, 3, asks("1")), made("b", operatorv1alpha1.BackupFailed, 2, asks("1"))}, "", "one", ""},
		{"what is deleted is not", []*object{made("a", completed, 3, asks("1"), deleted, func(b *object) { b.Finalizers = nil })}, "a", "one", ""},
		{"a request of any length", []*object{made("a", completed, 3, asks(strings.Repeat("ä", 40)+"x"), answered(strings.Repeat("ä", 32)))}, "a", "one", ""},
		{"one that waits is deleted", []*object{made("b", pending, 2, deleted)}, "", "one", ""},
	} {
		got := ""
		if task := Choose(test.all, operatorv1alpha1.BackupStatus{Pruned: test.pruned}, test.lineage, "", now); task != nil {
			got = fmt.Sprintf("%s in %s, skips %v", task.ID(), task.Lineage, task.SkipUnchanged)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestAwait is about a backup that something waits for, with the attempts to take it.
func TestAwait(t *testing.T) {
	const completed, failed, saving = operatorv1alpha1.BackupCompleted, operatorv1alpha1.BackupFailed, operatorv1alpha1.BackupSaving
	goes := func(b *object) { b.DeletionTimestamp = before(time.Minute) }
	for _, test := range []struct {
		reason   string
		all      []*object
		verified bool
		lineage  string
		done     string
		create   string
		says     string
		after    time.Duration
	}{
		{"the first attempt", []*object{made("op", completed, 1), made("opx", completed, 1, verified), made("op0", completed, 1, verified), made("other-op1", completed, 1, verified)}, true, "one", "", "op1", "a backup is being created", 0},
		{"it is under way", []*object{made("op1", saving, time.Minute)}, true, "one", "", "", "backup op1 is Saving", 0},
		{"it is verified", []*object{made("op1", failed, 20*time.Minute), made("op2", completed, time.Minute, verified)}, true, "one", "op2", "", "", 0},
		{"it is not verified, and has to be", []*object{made("op1", completed, 10*time.Minute)}, true, "one", "", "op2", "backup op1 is Completed", 0},
		{"it is not verified, and need not be", []*object{made("op1", completed, time.Minute)}, false, "one", "op1", "", "", 0},
		{"it is of other data", []*object{made("op1", completed, 10*time.Minute, verified)}, true, "two", "", "op2", "backup op1 is Completed", 0},
		{"of what data is not known", []*object{made("op1", completed, 10*time.Minute, verified)}, true, "", "", "op2", "backup op1 is Completed", 0},
		{"it has just failed", []*object{made("op1", failed, 2*time.Minute, func(b *object) { b.Status.Message = "no route" })}, true, "one", "", "", "backup op1 is Failed: no route; the next one is taken at 2026-03-01T10:23:30Z", 3 * time.Minute},
		{"it has failed for the third time, whose first is gone", []*object{made("op3", failed, 8*time.Minute), made("op2", failed, 20*time.Minute)}, true, "one", "", "", "backup op3 is Failed; the next one is taken at 2026-03-01T10:27:30Z", 7 * time.Minute},
		{"it has failed for days", []*object{made("op40", failed, 61*time.Minute)}, true, "one", "", "op41", "backup op40 is Failed", 0},
		{"it has failed by a clock that was wrong", []*object{made("op1", failed, -1000*time.Hour)}, true, "one", "", "op2", "backup op1 is Failed", 0},
		{"someone else has made others", []*object{made("op1000", completed, 1, verified), made("op9223372036854775807", completed, 1, verified), made("op-1", completed, 1, verified)}, true, "one", "", "op1", "a backup is being created", 0},
		{"someone deletes it", []*object{made("op1", saving, time.Minute, goes)}, true, "one", "", "op2", "a backup is being created", 0},
	} {
		wait := Needed{Prefix: "op", Lineage: test.lineage, Verified: test.verified}.Await(test.all, now)
		done := ""
		if wait.Done != nil {
			done = wait.Done.Name
		}
		if done != test.done || wait.Create != test.create || !strings.HasPrefix(wait.Message, test.says) || wait.After != test.after || wait.Failing != strings.Contains(wait.Message, "the next one") {
			t.Errorf("%s: %+v", test.reason, wait)
		}
	}
	if wait := (Needed{Prefix: "op", Lineage: "one"}).Await([]*object{made("op999", failed, 9*time.Hour)}, now); wait.Create != "" || !wait.Failing || !strings.Contains(wait.Message, "op999, after which no other one is taken: delete it") {
		t.Errorf("after the last attempt: %+v", wait)
	}
	// One that is older than it may be is followed at once, and the next one may be older.
	at := func(age time.Duration) func(*object) { return func(b *object) { b.Status.TakenTime = before(age) } }
	old := made("op1", completed, time.Minute, verified, at(40*time.Minute))
	for _, test := range []struct {
		reason, done, create, says string
		all                        []*object
	}{
		{"fresh", "op1", "", "", []*object{made("op1", completed, time.Minute, verified, at(20*time.Minute))}},
		{"old", "", "op2", "backup op1 was taken at 2026-03-01T09:40:30Z, and what was written since is not in it: another", []*object{old}},
		{"old, after a failure", "", "op2", "backup op1 was", []*object{made("op0", failed, 1), old}},
		{"the next one failed", "", "", "backup op2 is Failed; the next one", []*object{made("op2", failed, time.Minute), old}},
		{"the next one is fresh", "op2", "", "", []*object{made("op2", completed, time.Minute, verified, at(time.Minute)), old}},
		{"the next one takes as long", "op2", "", "", []*object{made("op2", completed, time.Minute, verified, at(50*time.Minute)), old}},
		{"the next one is old, too", "", "op3", "backup op2 was", []*object{made("op2", completed, time.Minute, verified, at(61*time.Minute)), old}},
	} {
		wait := Needed{Prefix: "op", Lineage: "one", Verified: true, Fresh: 30 * time.Minute}.Await(test.all, now)
		done := ""
		if wait.Done != nil {
			done = wait.Done.Name
		}
		if done != test.done || wait.Create != test.create || !strings.HasPrefix(wait.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, wait)
		}
	}
	// With the longest name of a registry, a hundred attempts have names that are allowed.
	if longest := strings.Repeat("a", 40) + "-20261123-120000-del999"; len(longest) > 63 {
		t.Errorf("%s has %d characters", longest, len(longest))
	}
}

// TestNewestVerified is about the backup that is left of a registry which could not be saved.
func TestNewestVerified(t *testing.T) {
	const completed = operatorv1alpha1.BackupCompleted
	all := []*object{made("a", completed, 3, verified), made("b", completed, 2, verified), made("c", completed, 1), made("d", operatorv1alpha1.BackupDamaged, 1, verified), made("e", completed, 1, verified, of("two"))}
	if got := NewestVerified(all, "one"); got == nil || got.Name != "b" {
		t.Errorf("it is %+v", got)
	}
	for lineage, all := range map[string][]*object{"": {made("a", completed, 3, verified, of(""))}, "three": all, "one": all[2:]} {
		if got := NewestVerified(all, lineage); got != nil {
			t.Errorf("of %q it is %s", lineage, got.Name)
		}
	}
}

// TestVerifiedBeforeDeletion expects a last backup to be verified whatever the spec says.
func TestVerifiedBeforeDeletion(t *testing.T) {
	b := made("b", operatorv1alpha1.BackupSaving, time.Minute, func(b *object) {
		b.Annotations = map[string]string{operatorv1alpha1.AnnotationBackupReason: string(operatorv1alpha1.BackupDeletion)}
	})
	Advance(Task{Step: Save, Object: b, Name: "b"}, Read(jobOf(batchv1.JobComplete, 0, report+"}")), operatorv1alpha1.VerifyNever, now)
	if b.Status.Phase != operatorv1alpha1.BackupVerifying || !Made(b) || Scheduled(b) {
		t.Errorf("it is %s, made %v, scheduled %v", b.Status.Phase, Made(b), Scheduled(b))
	}
}

// jobOf returns a Job that has ended, unless the condition is empty, and a pod of it.
func jobOf(condition batchv1.JobConditionType, exit int32, message string) (*batchv1.Job, []corev1.Pod) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "fleet-backup", UID: "this"}}
	if condition != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Message: "it is so"}}
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{batchv1.ControllerUidLabel: "this"}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}}}}
	return job, []corev1.Pod{pod}
}

const report = `{"name":"b","revision":42,"bytes":7,"sha256":"0a","etcdVersion":"3.7.3","release":"v0.4.0","time":"2026-03-01T10:00:00Z","keys":{"roles":1,"clusters":2},"location":"s3://b/one/b/manifest.json"`

func TestAdvance(t *testing.T) {
	const always, never = operatorv1alpha1.VerifyAlways, operatorv1alpha1.VerifyNever
	earlier := strings.Replace(report, `"name":"b"`, `"name":"a"`, 1)
	for _, test := range []struct {
		reason    string
		step      Step
		verify    operatorv1alpha1.BackupVerification
		condition batchv1.JobConditionType
		exit      int32
		message   string
		phase     operatorv1alpha1.BackupPhase
		says      string
		again     bool
	}{
		{"it runs", Save, always, "", 0, "", operatorv1alpha1.BackupSaving, "", false},
		{"it was taken", Save, always, batchv1.JobComplete, 0, report + "}", operatorv1alpha1.BackupVerifying, "", false},
		{"it was taken, which is all", Save, never, batchv1.JobComplete, 0, report + "}", operatorv1alpha1.BackupCompleted, "", false},
		{"it was taken and verified before", Save, always, batchv1.JobComplete, 0, report + `,"verifiedTime":"2026-03-01T10:10:00Z"}`, operatorv1alpha1.BackupCompleted, "", false},
		{"nothing has changed", Save, always, batchv1.JobComplete, 0, earlier + `,"unchanged":true,"verifiedTime":"2026-03-01T10:10:00Z"}`, operatorv1alpha1.BackupSkipped, "nothing has changed since backup a", false},
		{"nothing has changed since one that was never verified", Save, always, batchv1.JobComplete, 0, earlier + `,"unchanged":true}`, operatorv1alpha1.BackupVerifying, "", false},
		{"another one is reported", Save, always, batchv1.JobComplete, 0, earlier + "}", operatorv1alpha1.BackupFailed, "something else", false},
		{"nothing is reported", Save, always, batchv1.JobComplete, 0, "{}", operatorv1alpha1.BackupFailed, "something else", false},
		{"the report is cut", Save, always, batchv1.JobComplete, 0, report, operatorv1alpha1.BackupSaving, "", true},
		{"it was verified", Verify, always, batchv1.JobComplete, 0, report + `,"verifiedTime":"2026-03-01T10:10:00Z"}`, operatorv1alpha1.BackupCompleted, "", false},
		{"the store is down", Save, always, batchv1.JobFailed, 1, "error: store s3://b: no route\n", operatorv1alpha1.BackupFailed, "store s3://b: no route", false},
		{"the store is down after that", Verify, always, batchv1.JobFailed, 1, "error: no route", operatorv1alpha1.BackupFailed, "the backup is in its store, and could not be verified: no route", false},
		{"it is damaged", Verify, always, batchv1.JobFailed, 65, "error: backup b can't be used: hash", operatorv1alpha1.BackupDamaged, "backup b can't be used: hash", false},
		{"nothing tells why", Save, always, batchv1.JobFailed, 1, "", operatorv1alpha1.BackupFailed, "Job fleet-backup failed (it is so)", false},
	} {
		b := made("b", operatorv1alpha1.BackupSaving, time.Minute)
		if test.step == Verify {
			b = made("b", operatorv1alpha1.BackupVerifying, time.Minute)
		}
		task := Task{Step: test.step, Object: b, Name: "b", SkipUnchanged: true}
		_, again := Advance(task, Read(jobOf(test.condition, test.exit, test.message)), test.verify, now)
		if b.Status.Phase != test.phase || !strings.Contains(b.Status.Message, test.says) || again != test.again {
			t.Errorf("%s: %s %q, again %v; want %s %q, %v", test.reason, b.Status.Phase, b.Status.Message, again, test.phase, test.says, test.again)
		}
		if ended := b.Status.CompletionTime != nil; ended != b.Status.Phase.Ended() {
			t.Errorf("%s: it has ended: %v", test.reason, ended)
		}
	}
	b := made("b", operatorv1alpha1.BackupSaving, time.Minute)
	Advance(Task{Step: Save, Object: b, Name: "b"}, Read(jobOf(batchv1.JobComplete, 0, report+"}")), never, now)
	if s := b.Status; s.Revision != 42 || s.Bytes != 7 || s.SHA256 != "0a" || s.EtcdVersion != "3.7.3" || s.Release != "v0.4.0" || s.Location == "" || s.VerifiedTime != nil || len(s.Keys) != 2 || s.Keys[0].Resource != "clusters" || s.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("the status is %+v", s)
	}
}

// TestVerifiedAgain is about what a second verification says of a backup that was good, and of
// one that was not.
func TestVerifiedAgain(t *testing.T) {
	const completed, damaged, failed = operatorv1alpha1.BackupCompleted, operatorv1alpha1.BackupDamaged, operatorv1alpha1.BackupFailed
	verifiedNow := report + `,"verifiedTime":"2026-03-01T10:20:00Z"}`
	for _, test := range []struct {
		reason, before string
		phase          operatorv1alpha1.BackupPhase
		condition      batchv1.JobConditionType
		exit           int32
		message        string
		want           operatorv1alpha1.BackupPhase
		says           string
		ended, open    bool // is completionTime now, and is the request left
	}{
		{"it runs", "", completed, "", 0, "", completed, "", false, true},
		{"its report is lost", "", completed, batchv1.JobComplete, 0, "x", completed, "", false, true},
		{"it is still good", notVerified + "no route", completed, batchv1.JobComplete, 0, verifiedNow, completed, "", false, false},
		{"it is damaged by now", "", completed, batchv1.JobFailed, 65, "error: hash", damaged, "hash", true, false},
		{"the store is down", "", completed, batchv1.JobFailed, 1, "error: no route", completed, notVerified + "no route", false, false},
		{"the store is down for the second time", "hash; " + notVerified + "no route", damaged, batchv1.JobFailed, 1, "error: 403", damaged, "hash; " + notVerified + "403", false, false},
		{"a helper that verifies nothing", "", completed, batchv1.JobComplete, 0, report + "}", completed, notVerified + otherReport, false, false},
		{"it could not be verified, and now it was", "no route", failed, batchv1.JobComplete, 0, verifiedNow, completed, "", false, false},
	} {
		b := made("b", test.phase, time.Hour, asks("1"))
		b.Status.Name, b.Status.Location, b.Status.Message = "b", "s3://b/one/b", test.before
		_, again := Advance(Task{Step: Verify, Object: b, Name: "b", Request: "1"}, Read(jobOf(test.condition, test.exit, test.message)), operatorv1alpha1.VerifyNever, now)
		s := b.Status
		if s.Phase != test.want || s.Message != test.says || s.CompletionTime.Time.Equal(now.Truncate(time.Second)) != test.ended || (s.VerifyRequest == "") != test.open || again != (test.message == "x") {
			t.Errorf("%s: %s %q, ended %s, answers %q, again %v", test.reason, s.Phase, s.Message, s.CompletionTime, s.VerifyRequest, again)
		}
		if test.want == completed && !test.open && test.says == "" && s.VerifiedTime.UTC().Minute() != 20 {
			t.Errorf("%s: it is verified at %s", test.reason, s.VerifiedTime)
		}
	}
}

// TestDamagedLater is about the status of a registry whose last backup another verification
// has found damaged: the one before it is what counts.
func TestDamagedLater(t *testing.T) {
	all := []*object{made("a", operatorv1alpha1.BackupCompleted, 3*time.Hour, verified), made("b", operatorv1alpha1.BackupCompleted, 2*time.Hour, verified),
		made("c", operatorv1alpha1.BackupSkipped, time.Hour, func(b *object) { b.Status.Name, b.Status.Location = "b", "s3://b/one/b" })}
	status := operatorv1alpha1.BackupStatus{Lineage: "one"}
	if Summarize(&status, all); status.LastSuccess.Name != "b" {
		t.Fatalf("the status is %+v", status.LastSuccess)
	}
	all[1].Status.VerifiedTime = before(time.Minute)
	all[2].Status.VerifiedTime = before(time.Minute)
	if Summarize(&status, all); !status.LastSuccess.VerifiedTime.Equal(before(time.Minute)) {
		t.Errorf("verified again, the last success is %+v", status.LastSuccess)
	}
	end(all[1], operatorv1alpha1.BackupDamaged, "hash", now)
	if Summarize(&status, all); status.LastSuccess == nil || status.LastSuccess.Name != "a" || status.LastFailure == nil || status.LastFailure.Name != "b" {
		t.Errorf("damaged, the status is %+v, %+v", status.LastSuccess, status.LastFailure)
	}
	if f := Judge(operatorv1alpha1.Backup{Schedule: "0 * * * *"}, times(t, "0 * * * *", ""), status, all, now); f.Good || f.Reason != operatorv1alpha1.ReasonVerificationFailed {
		t.Errorf("BackupReady says %+v", f)
	}
}

// TestGoodLater verifies an old backup again, which had failed for want of that: it is no newer
// for that than it is, and no failure any more.
func TestGoodLater(t *testing.T) {
	for _, phase := range []operatorv1alpha1.BackupPhase{operatorv1alpha1.BackupCompleted, operatorv1alpha1.BackupFailed, operatorv1alpha1.BackupDamaged} {
		old, newer := made("b", phase, 9*time.Hour, asks("1")), made("newer", operatorv1alpha1.BackupCompleted, 5*time.Hour)
		old.Status.Name, old.Status.Location = "b", "s3://b/one/b"
		status := operatorv1alpha1.BackupStatus{Lineage: "one", LastFailure: &operatorv1alpha1.BackupFailure{Time: *before(9 * time.Hour), Name: "b"}}
		ended := *old.Status.CompletionTime
		Advance(Task{Step: Verify, Object: old, Name: "b", Request: "1"}, Read(jobOf(batchv1.JobComplete, 0, strings.Replace(report, "10:00:00", "01:00:00", 1)+`,"verifiedTime":"2026-03-01T10:20:00Z"}`)), operatorv1alpha1.VerifyNever, now)
		Summarize(&status, []*object{old, newer})
		if old.Status.Phase != operatorv1alpha1.BackupCompleted || !old.Status.CompletionTime.Equal(&ended) || status.LastSuccess.Name != "newer" || status.LastFailure != nil || !status.Window.Oldest.Equal(old.Status.TakenTime) {
			t.Errorf("%s: it is %s at %s, the status is %+v, %+v", phase, old.Status.Phase, old.Status.CompletionTime, status.LastSuccess, status.LastFailure)
		}
		status.LastSuccess = nil
		if Summarize(&status, []*object{old}); status.LastSuccess == nil || status.LastSuccess.Time.UTC().Hour() != 1 || status.LastSuccess.VerifiedTime == nil {
			t.Errorf("%s: alone, the last success is %+v", phase, status.LastSuccess)
		}
	}
}

// TestLostNode is about a Job whose time is over, and whose pod will not end.
func TestLostNode(t *testing.T) {
	job, pods := jobOf(batchv1.JobFailureTarget, 0, "")
	pods[0].Status.ContainerStatuses = nil
	if got := Read(job, pods); got.State != Running {
		t.Errorf("while its pod ends for another reason, read is %+v", got)
	}
	job.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
	if got := Read(job, pods); got.State != Failed || got.Message == "" {
		t.Errorf("read is %+v", got)
	}
}

// TestContainerOfOthers is about a Job that has done its step, beside a container that a webhook
// has added and that never ends.
func TestContainerOfOthers(t *testing.T) {
	job, pods := jobOf(batchv1.JobComplete, 0, report+"}")
	job.Status.Conditions, pods[0].Status.Phase, pods[0].Spec.NodeName = nil, corev1.PodRunning, "n1"
	pods[0].Status.ContainerStatuses = append(pods[0].Status.ContainerStatuses, corev1.ContainerStatus{Name: "mesh-proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	if got := Read(job, pods); got.State != Running || !strings.Contains(got.Message, "container mesh-proxy keeps running") {
		t.Errorf("read is %+v", got)
	}
}

// TestPodsOfOthers is about pods that an earlier Job of the same name has left: what they
// report is not of this one.
func TestPodsOfOthers(t *testing.T) {
	job, pods := jobOf(batchv1.JobComplete, 0, report+"}")
	pods[0].Labels[batchv1.ControllerUidLabel] = "before"
	if got := Read(job, pods); got.State != Lost {
		t.Errorf("read is %+v", got)
	}
}

// TestTransient counts what goes with its object, and nothing else.
func TestTransient(t *testing.T) {
	transient := func(b *object) { b.Spec.DeletionPolicy = operatorv1alpha1.BackupDeletionPolicyDelete }
	all := []*object{
		made("a", operatorv1alpha1.BackupCompleted, time.Hour), made("b", operatorv1alpha1.BackupCompleted, time.Hour, transient),
		made("c", operatorv1alpha1.BackupCompleted, time.Hour, transient, func(b *object) { b.Status.Lineage = "two" }),
		made("d", operatorv1alpha1.BackupFailed, time.Hour, transient), made("e", operatorv1alpha1.BackupDamaged, time.Hour, transient),
	}
	if got := Transient(all, "one"); got != 2 {
		t.Errorf("%d are transient, want 2: b and e", got)
	}
}

func TestObsolete(t *testing.T) {
	var many []*object
	for i := range 120 {
		phase, change := operatorv1alpha1.BackupCompleted, func(*object) {}
		if i == 100 {
			change = verified // the newest ones are not
		}
		many = append(many, made(fmt.Sprintf("b%03d", i), phase, time.Duration(120-i)*time.Hour, scheduled, change))
	}
	old := made("old", operatorv1alpha1.BackupCompleted, 1000*time.Hour, verified)
	kept := made("kept", operatorv1alpha1.BackupCompleted, 1001*time.Hour, withContent)
	failed := func(name string, age time.Duration, changes ...func(*object)) *object {
		return made(name, operatorv1alpha1.BackupFailed, age, append(changes, scheduled)...)
	}
	for _, test := range []struct {
		reason string
		all    []*object
		status operatorv1alpha1.BackupStatus
		want   []string
	}{
		{"few", []*object{made("a", operatorv1alpha1.BackupCompleted, 2), made("b", operatorv1alpha1.BackupCompleted, 1)}, operatorv1alpha1.BackupStatus{}, nil},
		{"skipped, and not counted", []*object{made("a", operatorv1alpha1.BackupSkipped, time.Hour)}, operatorv1alpha1.BackupStatus{LastSuccess: success(2 * time.Hour)}, nil},
		{"skipped", []*object{made("a", operatorv1alpha1.BackupSkipped, time.Hour)}, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Hour)}, []string{"a"}},
		{"failed", []*object{failed("a", time.Hour)}, operatorv1alpha1.BackupStatus{}, nil},
		{"failed before a success", []*object{failed("a", time.Hour), made("mine", operatorv1alpha1.BackupFailed, time.Hour)}, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Minute)}, []string{"a"}},
		{"failed again and again", []*object{failed("a", 5), failed("b", 4), failed("c", 3), failed("d", 2)}, operatorv1alpha1.BackupStatus{}, []string{"a"}},
		{"too many", append(slices.Clone(many[100:]), many[:99]...), operatorv1alpha1.BackupStatus{}, namesOf(many[:19])},
		{"too many, the only one that was verified is the oldest", append([]*object{old, kept}, many[:100]...), operatorv1alpha1.BackupStatus{}, namesOf(many[:2])},
		{"too many that wait", func() (out []*object) {
			for i := range 120 {
				out = append(out, made(fmt.Sprint(i), operatorv1alpha1.BackupPending, 1))
			}
			return append(out, made("newest", operatorv1alpha1.BackupCompleted, 1, verified))
		}(), operatorv1alpha1.BackupStatus{}, nil},
	} {
		if got := namesOf(Obsolete(test.all, test.status)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v go, want %v", test.reason, got, test.want)
		}
	}
}

// TestTooMany refuses what waits beyond a number, and counts no failure of the store.
func TestTooMany(t *testing.T) {
	var all []*object
	for i := range MostAsked + 2 {
		all = append(all, made(fmt.Sprintf("b%03d", i), operatorv1alpha1.BackupPending, time.Duration(200-i)*time.Minute, of("")))
	}
	all = append(all, made("scheduled", operatorv1alpha1.BackupPending, 1, scheduled), made("done", operatorv1alpha1.BackupCompleted, 1), made("gone", operatorv1alpha1.BackupPending, 300*time.Minute, deleted))
	if got, want := namesOf(TooMany(all)), []string{fmt.Sprintf("b%03d", MostAsked), fmt.Sprintf("b%03d", MostAsked+1)}; !slices.Equal(got, want) {
		t.Errorf("too many are %v, want %v", got, want)
	}
	if got := TooMany(all[:MostAsked]); len(got) > 0 {
		t.Errorf("too many of %d are %v", MostAsked, namesOf(got))
	}
	for _, b := range TooMany(all) {
		Enter(b, operatorv1alpha1.BackupFailed, TooManyMessage(), now)
	}
	status := operatorv1alpha1.BackupStatus{Lineage: "one"}
	if Summarize(&status, all); status.LastFailure != nil || status.LastSuccess == nil {
		t.Errorf("the status is %+v", status)
	}
}

func namesOf(all []*object) []string {
	var out []string
	for _, b := range all {
		out = append(out, b.Name)
	}
	return out
}

func TestJudge(t *testing.T) {
	s := times(t, "0 * * * *", "")
	saving := made("b", operatorv1alpha1.BackupSaving, 1, func(b *object) { b.Status.Message = "pod x is waiting to be scheduled" })
	for _, test := range []struct {
		reason  string
		suspend bool
		all     []*object
		status  operatorv1alpha1.BackupStatus
		good    bool
		want    string
		says    string
	}{
		{"good", false, nil, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Minute)}, true, operatorv1alpha1.ReasonBackedUp, "is last, verified at 2026-03-01T10:19:30Z; the next one is due at 2026-03-01T11:00:00Z"},
		{"the first one", false, []*object{saving}, operatorv1alpha1.BackupStatus{}, false, operatorv1alpha1.ReasonFirstBackupPending, "b is Saving: pod x is waiting to be scheduled"},
		{"overdue", false, []*object{saving}, operatorv1alpha1.BackupStatus{LastSuccess: success(5 * time.Hour)}, false, operatorv1alpha1.ReasonBackupOverdue, "two periods"},
		{"failed", false, nil, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Hour), LastFailure: failure(time.Minute)}, false, operatorv1alpha1.ReasonBackupFailed, "lost failed at 2026-03-01T10:19:30Z: no route; the last backup"},
		{"failed, and succeeded", false, nil, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Minute), LastFailure: failure(time.Hour)}, true, operatorv1alpha1.ReasonBackedUp, ""},
		{"damaged", false, []*object{made("lost", operatorv1alpha1.BackupDamaged, time.Minute)}, operatorv1alpha1.BackupStatus{LastFailure: failure(time.Minute)}, false, operatorv1alpha1.ReasonVerificationFailed, "no backup has succeeded yet"},
		{"old ones can't be removed", false, nil, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Minute), PruneFailure: unremoved(time.Hour)}, true, operatorv1alpha1.ReasonBackupsNotRemoved, "; old backups can't be removed since 2026-03-01T08:20:30Z, and the operator will retry at 2026-03-01T11:20:30Z: a lock"},
		{"that is tried again", false, nil, operatorv1alpha1.BackupStatus{LastSuccess: success(time.Minute), PruneFailure: unremoved(0)}, true, operatorv1alpha1.ReasonBackupsNotRemoved, "another attempt is in progress: a lock"},
		{"old ones can't be removed, and new ones fail", false, nil, operatorv1alpha1.BackupStatus{LastFailure: failure(time.Minute), PruneFailure: unremoved(time.Hour)}, false, operatorv1alpha1.ReasonBackupFailed, "no route; no backup has succeeded yet; old backups can't be removed"},
		{"suspended", true, nil, operatorv1alpha1.BackupStatus{LastSuccess: success(50 * time.Hour)}, false, operatorv1alpha1.ReasonBackupSuspended, "until spec.backup.suspend is false"},
	} {
		got := Judge(operatorv1alpha1.Backup{Schedule: "0 * * * *", Suspend: test.suspend}, s, test.status, test.all, now)
		if got.Good != test.good || got.Reason != test.want || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: %+v, want %s %q", test.reason, got, test.want, test.says)
		}
	}
}

func TestSummarize(t *testing.T) {
	status := operatorv1alpha1.BackupStatus{Lineage: "one"}
	all := []*object{
		made("a", operatorv1alpha1.BackupCompleted, 5*time.Hour, verified), made("b", operatorv1alpha1.BackupCompleted, 3*time.Hour),
		made("other", operatorv1alpha1.BackupCompleted, 9*time.Hour, func(b *object) { b.Status.Lineage = "two" }),
		made("newer", operatorv1alpha1.BackupCompleted, time.Minute, func(b *object) { b.Status.Lineage = "two" }),
		made("c", operatorv1alpha1.BackupSkipped, time.Hour, func(b *object) { b.Status.Name = "b" }), made("d", operatorv1alpha1.BackupDamaged, 2*time.Hour), made("e", operatorv1alpha1.BackupSaving, 1),
	}
	Summarize(&status, all)
	if status.LastSuccess.Name != "b" || !status.LastSuccess.Time.Equal(before(time.Hour)) || status.LastFailure.Name != "d" || !status.Window.Oldest.Equal(before(5*time.Hour)) || !status.Window.Newest.Equal(before(3*time.Hour)) {
		t.Errorf("the status is %+v, %+v, %+v", status.LastSuccess, status.LastFailure, status.Window)
	}
	Summarize(&status, nil)
	if status.LastSuccess == nil || status.LastFailure == nil || status.Window != nil {
		t.Errorf("without objects, the status is %+v", status)
	}
}

// TestKeys names the keys that backups need: those that the servers had while one was taken and,
// once a server has read all of it, no others.
func TestKeys(t *testing.T) {
	of := func(phase operatorv1alpha1.BackupPhase, lineage, location string, keys ...string) *operatorv1alpha1.ClusterRegistryBackup {
		b := &operatorv1alpha1.ClusterRegistryBackup{}
		b.Status = operatorv1alpha1.ClusterRegistryBackupStatus{Phase: phase, Lineage: lineage, Location: location, EncryptionKeys: keys}
		return b
	}
	for reason, test := range map[string]struct {
		backup *operatorv1alpha1.ClusterRegistryBackup
		want   []string
	}{
		"it is in the store":               {of(operatorv1alpha1.BackupCompleted, "l", "s3://b", "secretbox/b", "aescbc/a", "secretbox/b"), []string{"aescbc/a", "secretbox/b"}},
		"it is being verified":             {of(operatorv1alpha1.BackupVerifying, "l", "s3://b", "aescbc/a"), []string{"aescbc/a"}},
		"it could not be verified":         {of(operatorv1alpha1.BackupFailed, "l", "s3://b", "aescbc/a"), []string{"aescbc/a"}},
		"it was not changed since another": {of(operatorv1alpha1.BackupSkipped, "l", "s3://b", "aescbc/a"), []string{"aescbc/a"}},
		"it is being taken":                {of(operatorv1alpha1.BackupSaving, "l", "", "aescbc/a"), []string{"aescbc/a"}},
		"it was not taken":                 {of(operatorv1alpha1.BackupFailed, "l", "", "aescbc/a"), nil},
		"it is damaged":                    {of(operatorv1alpha1.BackupDamaged, "l", "s3://b", "aescbc/a"), nil},
		"it is of other data":              {of(operatorv1alpha1.BackupCompleted, "m", "s3://b", "aescbc/a"), nil},
	} {
		if got := Keys([]*operatorv1alpha1.ClusterRegistryBackup{test.backup}, "l"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", reason, got, test.want)
		}
	}
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	b.Name = "b"
	for _, inUse := range [][]string{{"identity"}, {"identity", "aescbc/a"}, {"aescbc/a", "identity"}, {"aescbc/a", "secretbox/b"}} {
		Encrypted(b, inUse)
	}
	if !slices.Equal(b.Status.EncryptionKeys, []string{"aescbc/a", "secretbox/b"}) {
		t.Errorf("taken while keys are changed, it may need %v", b.Status.EncryptionKeys)
	}
	task := Task{Step: Save, Object: b, Name: "b"}
	Advance(task, Outcome{State: Succeeded, report: `{"name": "b", "revision": 7, "location": "s3://b"}`}, operatorv1alpha1.VerifyAlways, now)
	if len(b.Status.EncryptionKeys) != 2 {
		t.Errorf("not verified yet, it may need %v", b.Status.EncryptionKeys)
	}
	task.Step = Verify
	Advance(task, Outcome{State: Failed, Message: "encrypted with aescbc/a"}, operatorv1alpha1.VerifyAlways, now)
	if len(b.Status.EncryptionKeys) != 2 || b.Status.Phase != operatorv1alpha1.BackupFailed || !strings.Contains(b.Status.Message, "could not be verified: encrypted with aescbc/a") {
		t.Errorf("not verified, it is %+v", b.Status)
	}
	Advance(task, Outcome{State: Succeeded, report: `{"name": "b", "revision": 7, "location": "s3://b", "verifiedTime": "2026-03-01T10:00:00Z", "encryptionKeys": ["aescbc/a"]}`}, operatorv1alpha1.VerifyAlways, now)
	if !slices.Equal(b.Status.EncryptionKeys, []string{"aescbc/a"}) || b.Status.Phase != operatorv1alpha1.BackupCompleted {
		t.Errorf("verified, it needs %+v", b.Status)
	}
}
