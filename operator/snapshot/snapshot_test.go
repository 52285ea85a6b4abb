package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// host has a Job and its pods, and counts what is asked of it.
type host struct {
	job     *batchv1.Job
	unknown verdict.Verdict
	pods    []corev1.Pod
	// refuses are the errors of applying, by kind; podsErr and deleteErr those of the rest.
	refuses            map[string]error
	podsErr, deleteErr error
	// noPod says why the Job has none.
	noPod string
	calls []string
}

func (h *host) Apply(_ context.Context, object *unstructured.Unstructured) error {
	h.calls = append(h.calls, "apply "+object.GetKind())
	return h.refuses[object.GetKind()]
}
func (h *host) Job(context.Context) (*batchv1.Job, verdict.Verdict)      { return h.job, h.unknown }
func (h *host) Pods(context.Context) ([]corev1.Pod, error)               { return h.pods, h.podsErr }
func (h *host) NoPod(context.Context, *batchv1.Job, []corev1.Pod) string { return h.noPod }
func (h *host) DeleteJob(context.Context) error {
	h.calls = append(h.calls, "delete")
	return h.deleteErr
}

// jobOf returns the Job of a snapshot, with a condition of that age if it has a type.
func jobOf(name string, condition batchv1.JobConditionType, age time.Duration) *batchv1.Job {
	job := &batchv1.Job{}
	job.Name, job.Annotations = "fleet-snapshot", map[string]string{"operator.clusterregistry.io/snapshot": name}
	if condition != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}, {Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age))}}
	}
	return job
}

// podOf returns a pod whose container has ended, or is running if its message is so.
func podOf(phase corev1.PodPhase, container, message string, exit int32) corev1.Pod {
	status := corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}}}
	if message == "running" {
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	return corev1.Pod{Status: corev1.PodStatus{Phase: phase, InitContainerStatuses: []corev1.ContainerStatus{status}}}
}

// TestTake goes through what a Job can have become.
func TestTake(t *testing.T) {
	const tells = `{"name": "s1", "revision": 42}`
	saved := []corev1.Pod{podOf(corev1.PodSucceeded, "save", tells, 0)}
	for _, test := range []struct {
		reason string
		host   host
		saved  Saved
		// why is the verdict's reason, Done if that is empty.
		why, says string
		deletes   bool
	}{
		{"it is not known yet", host{unknown: verdict.Waiting("Waiting", "Job fleet-snapshot does not exist yet")}, Saved{}, "Progressing", "Job fleet-snapshot does not exist yet", false},
		{"the Job is of another snapshot", host{job: jobOf("s0", batchv1.JobComplete, 0), pods: saved}, Saved{}, "Progressing", "the Job of an earlier snapshot is removed", true},
		{"it begins", host{job: jobOf("s1", "", 0)}, Saved{}, "Progressing", "snapshot s1 is in progress", false},
		{"its pod is refused", host{job: jobOf("s1", "", 0), noPod: "Job fleet-snapshot has no pod: no"}, Saved{}, "Progressing", "snapshot s1 is in progress: Job fleet-snapshot has no pod: no", false},
		{"it waits for a node", host{job: jobOf("s1", "", 0), pods: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodPending}}}}, Saved{}, "Progressing", "snapshot s1 is in progress: ", false},
		{"it is being saved", host{job: jobOf("s1", "", 0), pods: []corev1.Pod{podOf(corev1.PodPending, "save", "running", 0)}}, Saved{}, "Progressing", "snapshot s1 is being saved", false},
		{"it is being proven", host{job: jobOf("s1", "", 0), pods: []corev1.Pod{podOf(corev1.PodPending, "restore", "running", 0)}}, Saved{}, "Progressing", "is being restored to a scratch volume to verify it", false},
		{"it was saved", host{job: jobOf("s1", batchv1.JobComplete, time.Hour), pods: saved}, Saved{"s1", 42, now.Add(-time.Hour)}, "", "", false},
		{"it was saved at the second attempt", host{job: jobOf("s1", batchv1.JobComplete, 0), pods: append([]corev1.Pod{podOf(corev1.PodFailed, "save", `{"name": "s1", "revision": 41}`, 1)}, saved...)}, Saved{"s1", 42, now}, "", "", false},
		{"the pod is gone", host{job: jobOf("s1", batchv1.JobComplete, time.Hour)}, Saved{"s1", 0, now.Add(-time.Hour)}, "Progressing", "no pod reports the snapshot any more, and it is taken again", true},
		{"the pod tells of another one", host{job: jobOf("s1", batchv1.JobComplete, 0), pods: []corev1.Pod{podOf(corev1.PodSucceeded, "save", `{"name": "s0", "revision": 42}`, 0)}}, Saved{"s1", 0, now}, "Progressing", "no pod reports", true},
		{"the pod tells of no revision", host{job: jobOf("s1", batchv1.JobComplete, 0), pods: []corev1.Pod{podOf(corev1.PodSucceeded, "save", `{"name": "s1"}`, 0)}}, Saved{"s1", 0, now}, "Progressing", "no pod reports", true},
		{"the pod tells nothing", host{job: jobOf("s1", batchv1.JobComplete, 0), pods: []corev1.Pod{podOf(corev1.PodSucceeded, "save", "saved", 0)}}, Saved{"s1", 0, now}, "Progressing", "no pod reports", true},
		{"another container tells", host{job: jobOf("s1", batchv1.JobComplete, 0), pods: []corev1.Pod{podOf(corev1.PodSucceeded, "restore", tells, 0)}}, Saved{"s1", 0, now}, "Progressing", "no pod reports", true},
		{"it failed just now", host{job: jobOf("s1", batchv1.JobFailed, time.Minute)}, Saved{}, "SnapshotFailed", "nothing was changed, since the snapshot of etcd failed: ", false},
		{"it failed a while ago", host{job: jobOf("s1", batchv1.JobFailed, 6*time.Minute)}, Saved{}, "Progressing", "the snapshot is retried", true},
		{"pods can't be listed", host{job: jobOf("s1", batchv1.JobComplete, 0), podsErr: errors.New("no route")}, Saved{}, "InternalError", "no route", false},
		{"an earlier Job can't be deleted", host{job: jobOf("s0", "", 0), deleteErr: errors.New("no route")}, Saved{}, "InternalError", "no route", true},
	} {
		got, v := Take(t.Context(), &test.host, Request{Name: "s1", Now: now})
		if got != test.saved || v.Complete() != (test.why == "") || v.Reason != test.why || !strings.Contains(v.Message, test.says) || (v.Err != nil) != (test.why == "InternalError") {
			t.Errorf("%s: %+v, %+v", test.reason, got, v)
		}
		if slices.Contains(test.host.calls, "delete") != test.deletes {
			t.Errorf("%s: %v", test.reason, test.host.calls)
		}
	}
}

// TestInTheWay is about a claim or a Job that is there and can't be changed: another
// Job may take the place of one, but what is on a claim is only for a person to give up.
func TestInTheWay(t *testing.T) {
	for _, test := range []struct {
		kind         string
		err          error
		reason, says string
		calls        []string
	}{
		{"Job", apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "fleet-snapshot", nil), operatorv1alpha1.ReasonProgressing, "the Job of an earlier snapshot is removed", []string{"apply PersistentVolumeClaim", "apply Job", "delete"}},
		{"Job", apierrors.NewForbidden(schema.GroupResource{}, "fleet-snapshot", nil), operatorv1alpha1.ReasonHostRefused, "forbidden", []string{"apply PersistentVolumeClaim", "apply Job"}},
		{"PersistentVolumeClaim", apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "fleet-snapshots", nil), operatorv1alpha1.ReasonSnapshotFailed, "PersistentVolumeClaim fleet-snapshots", []string{"apply PersistentVolumeClaim"}},
		{"PersistentVolumeClaim", apierrors.NewForbidden(schema.GroupResource{}, "fleet-snapshots", nil), operatorv1alpha1.ReasonSnapshotFailed, "refuses", []string{"apply PersistentVolumeClaim"}},
		{"PersistentVolumeClaim", apierrors.NewServiceUnavailable("later"), operatorv1alpha1.ReasonInternalError, "later", []string{"apply PersistentVolumeClaim"}},
	} {
		var objects []*unstructured.Unstructured
		for kind, name := range map[string]string{"PersistentVolumeClaim": "fleet-snapshots", "Job": "fleet-snapshot"} {
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": name}}})
		}
		slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(b.GetKind(), a.GetKind()) })
		host := &host{job: jobOf("s1", batchv1.JobComplete, 0), refuses: map[string]error{test.kind: test.err}}
		saved, v := Take(t.Context(), host, Request{Name: "s1", Objects: objects, Now: now})
		if saved != (Saved{}) || v.Complete() || v.Reason != test.reason || !strings.Contains(v.Message, test.says) || !slices.Equal(host.calls, test.calls) {
			t.Errorf("%s, %v: %+v after %v", test.kind, test.err, v, host.calls)
		}
	}
}
