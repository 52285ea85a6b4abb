package backup

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestBackupsAreWaitedFor brings a backup through its phases, back from a failure too, and has the
// library by which GitOps tools wait read each.
func TestBackupsAreWaitedFor(t *testing.T) {
	b := made("b", operatorv1alpha1.BackupPending, time.Minute)
	b.Generation = 3
	for _, step := range []struct {
		phase operatorv1alpha1.BackupPhase
		want  status.Status
	}{
		{operatorv1alpha1.BackupPending, status.InProgressStatus},
		{operatorv1alpha1.BackupSaving, status.InProgressStatus},
		{operatorv1alpha1.BackupVerifying, status.InProgressStatus},
		{operatorv1alpha1.BackupFailed, status.FailedStatus},
		{operatorv1alpha1.BackupCompleted, status.CurrentStatus},
		{operatorv1alpha1.BackupDamaged, status.FailedStatus},
		{operatorv1alpha1.BackupSkipped, status.CurrentStatus},
	} {
		Enter(b, step.phase, "why", now)
		if got := waited(t, b); got != step.want {
			t.Errorf("%s is %s; want %s", step.phase, got, step.want)
		}
	}
	b.Generation++
	if got := waited(t, b); got != status.InProgressStatus {
		t.Errorf("a change that is not observed is %s", got)
	}
	b.DeletionTimestamp = before(0)
	if got := waited(t, b); got != status.TerminatingStatus {
		t.Errorf("being deleted it is %s", got)
	}
}

// waited returns what tools that wait for a backup make of it.
func waited(t *testing.T, b *operatorv1alpha1.ClusterRegistryBackup) status.Status {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: tree})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}
