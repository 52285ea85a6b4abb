package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// read parses a part of an object.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func TestContainer(t *testing.T) {
	for reason, test := range map[string]struct {
		status, want string
		// failure is the exit code, 0 when the container has not failed.
		failure int32
	}{
		"kubelet has said nothing": {`{}`, "", 0},
		"it runs":                  {`{state: {running: {}}}`, "", 0},
		"it runs after a crash":    {`{state: {running: {}}, lastState: {terminated: {exitCode: 1, message: panic}}}`, "", 0},
		"it is being created":      {`{state: {waiting: {reason: ContainerCreating}}}`, "", 0},
		"its image is not there":   {`{state: {waiting: {reason: ErrImagePull, message: not found}}}`, "container c is waiting (ErrImagePull): not found", 0},
		"it is done":               {`{state: {terminated: {exitCode: 0, message: saved}}}`, "", 0},
		"it has failed":            {`{state: {terminated: {exitCode: 2, message: "a\nb\n"}}}`, "container c exited with code 2: a | b", 2},
		"its last failure says more than the wait for the next start": {`{state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 1, message: panic}}}`,
			"container c exited with code 1: panic", 1},
		"it was done, and waits to be started again": {`{state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 0}}}`,
			"container c is waiting (CrashLoopBackOff): back-off 10s", 0},
	} {
		status := read[corev1.ContainerStatus](t, test.status)
		status.Name = "c"
		if got := Container(*status); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
		got := int32(0)
		if terminated := Failure(*status); terminated != nil {
			got = terminated.ExitCode
		}
		if got != test.failure {
			t.Errorf("%s: failed with code %d, want %d", reason, got, test.failure)
		}
	}
}
