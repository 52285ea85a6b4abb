package backups

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// SaveBefore takes the snapshot before an operation that can't be taken back and, where
// spec.backup has a store, a backup before that: the snapshot is beside the data.
func (s *Stage) SaveBefore(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict) {
	if v := s.takeBefore(ctx, name); !v.Complete() {
		return snapshot.Saved{}, v
	}
	return snapshot.Take(ctx, snapshotHost{s.Objects}, snapshot.Request{Name: name, Objects: s.Rendered.Stages[render.StageSnapshot], Now: s.Now})
}

// snapshotHost takes snapshots of a registry.
type snapshotHost struct{ objects *operand.Objects }

// Apply implements snapshot.Host.
func (h snapshotHost) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	return h.objects.Apply(ctx, object)
}

// Job implements snapshot.Host.
func (h snapshotHost) Job(ctx context.Context) (*batchv1.Job, verdict.Verdict) {
	job := &batchv1.Job{}
	v := h.objects.Applied(ctx, render.StageSnapshot, job)
	return job, v
}

// Pods implements snapshot.Host.
func (h snapshotHost) Pods(ctx context.Context) ([]corev1.Pod, error) {
	return h.objects.Pods(ctx, operand.ComponentSnapshot)
}

// NoPod implements snapshot.Host.
func (h snapshotHost) NoPod(ctx context.Context, job *batchv1.Job, pods []corev1.Pod) string {
	return h.objects.Diagnoser().NoPod(ctx, job, pods)
}

// DeleteJob implements snapshot.Host.
func (h snapshotHost) DeleteJob(ctx context.Context) error {
	return job.Delete(ctx, h.objects, contract.SnapshotSuffix)
}
