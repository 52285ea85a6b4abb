package diagnose

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNoPod is about a Job whose pods a policy may refuse.
func TestNoPod(t *testing.T) {
	job := read[batchv1.Job](t, `{metadata: {namespace: team, name: j, uid: job}}`)
	refused := event(t, "a", "job", "Warning", "the label cost-center is required", "")
	pod := func(of string) []corev1.Pod {
		return []corev1.Pod{*read[corev1.Pod](t, `{metadata: {name: p, labels: {batch.kubernetes.io/controller-uid: `+of+`}}}`)}
	}
	for reason, test := range map[string]struct {
		pods   []corev1.Pod
		events []client.Object
		err    error
		want   string
	}{
		"it begins":                     {nil, nil, nil, ""},
		"its pod is refused":            {nil, []client.Object{refused}, nil, "Job j has no pod: the label cost-center is required"},
		"a pod of an earlier Job stays": {pod("other"), []client.Object{refused}, nil, "Job j has no pod: the label cost-center is required"},
		"it has a pod":                  {pod("job"), []client.Object{refused}, nil, ""},
		"events can't be read":          {nil, []client.Object{refused}, errors.New("later"), ""},
	} {
		if got := reading(t, test.err, test.events...).NoPod(t.Context(), job, test.pods); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

func TestJob(t *testing.T) {
	const failed = `{metadata: {name: j}, status: {conditions: [{type: FailureTarget, status: "True", message: soon}, {type: Failed, status: "True", message: Job has reached the specified backoff limit}]}}`
	done := read[corev1.Pod](t, `{metadata: {name: p0}, status: {phase: Succeeded, containerStatuses: [{name: save, state: {terminated: {exitCode: 0, message: saved}}}]}}`)
	crashed := read[corev1.Pod](t, `{metadata: {name: p1}, status: {phase: Failed, initContainerStatuses: [{name: save, state: {terminated: {exitCode: 1, message: no space left}}}]}}`)
	other := read[corev1.Pod](t, `{metadata: {name: p2}, status: {phase: Failed, containerStatuses: [{name: verify, state: {terminated: {exitCode: 1, message: later}}}]}}`)
	for reason, test := range map[string]struct {
		job  string
		pods []corev1.Pod
		want string
	}{
		"it has not begun":     {`{metadata: {name: j}}`, []corev1.Pod{*crashed}, ""},
		"it is complete":       {`{metadata: {name: j}, status: {conditions: [{type: Complete, status: "True", message: done}]}}`, []corev1.Pod{*crashed, *done}, ""},
		"it has not failed":    {`{metadata: {name: j}, status: {conditions: [{type: Failed, status: "False", message: no}]}}`, []corev1.Pod{*crashed}, ""},
		"its pods are gone":    {failed, nil, "Job j failed (Job has reached the specified backoff limit)"},
		"its pods say nothing": {failed, []corev1.Pod{*done}, "Job j failed (Job has reached the specified backoff limit)"},
		"a pod says why":       {failed, []corev1.Pod{*done, *crashed, *other}, "Job j failed (Job has reached the specified backoff limit): pod p1: container save exited with code 1: no space left"},
	} {
		if got := Job(read[batchv1.Job](t, test.job), test.pods); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}
