package operand

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/verdict"
)

// NoteMemory returns the verdict of a part that is ready again with a note that its pods
// were short of memory.
func NoteMemory(v verdict.Verdict, pods []corev1.Pod, now time.Time) verdict.Verdict {
	if problem := diagnose.OutOfMemory(pods, now); problem != "" {
		return v.Note(operatorv1alpha1.ReasonOOMKilled, problem)
	}
	return v
}

// MemoryReason returns the reason why a part is not ready, which is its pods' want of
// memory if they have that.
func MemoryReason(reason string, pods []corev1.Pod, now time.Time) string {
	if diagnose.OutOfMemory(pods, now) != "" {
		return operatorv1alpha1.ReasonOOMKilled
	}
	return reason
}
