package members

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestRestoring says what is restored and what to do when the backup is gone, as long as etcd
// has not served it; what is worse than a member that is not ready stays as it is.
func TestRestoring(t *testing.T) {
	const gone = "if that backup is gone meanwhile, set spec.deletionPolicy to Delete"
	for reason, test := range map[string]struct {
		was       string
		completed *time.Time
		want      string
	}{
		"a pod that is not ready": {operatorv1alpha1.ReasonMembersNotReady, nil, operatorv1alpha1.ReasonRestoring},
		"data that is lost":       {operatorv1alpha1.ReasonDataLost, nil, operatorv1alpha1.ReasonDataLost},
		"it was restored":         {operatorv1alpha1.ReasonMembersNotReady, new(time.Now()), operatorv1alpha1.ReasonMembersNotReady},
	} {
		s := &Stage{Objects: operandtest.New(t, "{}")}
		s.Identity = identity.New(s.Objects)
		s.Identity.Record = &etcd.Record{Restored: &etcd.Restored{Completed: test.completed, Report: contract.BackupReport{Location: "s3://b/one"}}}
		v := s.restoring(verdict.Waiting(test.was, "fetch fails"))
		restoring := test.want == operatorv1alpha1.ReasonRestoring
		if v.Reason != test.want || !strings.Contains(v.Message, "fetch fails") || strings.Contains(v.Message, gone) != restoring || strings.Contains(v.Message, "from s3://b/one") != restoring {
			t.Errorf("%s: %+v", reason, v)
		}
	}
}

// TestEndEarlier replaces a pod in which a member runs that has lost its quorum, since it began
// before the recovery was recorded: it must not be taken for another etcd, which would stop all.
func TestEndEarlier(t *testing.T) {
	for reason, test := range map[string]struct {
		phase   operatorv1alpha1.RecoveryPhase
		cluster string
		evicted string
	}{
		"it is of the etcd of before": {operatorv1alpha1.RecoveryRestoring, "c0", "fleet-etcd-1"},
		"it is of the new one":        {operatorv1alpha1.RecoveryRestoring, "c", ""},
		"all are stopped still":       {operatorv1alpha1.RecoveryStopping, "c0", ""},
	} {
		m := newManaged(t, 3, func(m *managed) {
			for i := range m.state.Members {
				if i != 1 {
					m.state.Members[i] = etcd.Member{Name: m.state.Members[i].Name, Err: errors.New("it does not answer")}
				}
			}
			m.state.Members[1].ClusterID = test.cluster
			m.Identity.Record.Recovered = &etcd.Recovered{Cluster: "c0", Phase: test.phase, Member: "fleet-etcd-1"}
		})
		m.members(t.Context())
		if got := strings.Join(m.evicted, " "); got != test.evicted {
			t.Errorf("%s: evicted %q, want %q", reason, got, test.evicted)
		}
	}
}

// TestJoinsLater is ready with the one member that was recovered: others that are to join only
// are neither missing, nor being replaced, and their guards say nothing of a loss.
func TestJoinsLater(t *testing.T) {
	m := newManaged(t, 3, replaced(0, 1, 2), func(m *managed) {
		for i := range 2 {
			m.state.Members[i] = etcd.Member{Name: m.state.Members[i].Name, Err: errors.New("it does not answer")}
			m.pods[i].CreationTimestamp, m.pods[i].Status.Conditions = metav1.NewTime(m.Now), nil
			m.pods[i].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "etcd", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: contract.GuardForeign, Message: "other data"}}}}
		}
		m.state.List = m.state.List[2:]
		m.Identity.Record.Recovered, m.Identity.Record.Members = &etcd.Recovered{Completed: &m.Now}, map[string]string{"fleet-etcd-2": "a2"}
	})
	asked := []string{}
	ask := m.Ask
	m.Ask = func(ctx context.Context, access etcd.Access) etcd.State {
		asked = slices.Sorted(maps.Keys(access.Endpoints))
		state := ask(ctx, access)
		state.Members = slices.DeleteFunc(state.Members, func(member etcd.Member) bool { return !slices.Contains(asked, member.Name) })
		return state
	}
	if v := m.members(t.Context()); !v.Complete() || m.found.Replacing || m.found.Rolling != "" || !slices.Equal(asked, []string{"fleet-etcd-2"}) {
		t.Errorf("%+v, %+v, asked %v", v, m.found, asked)
	}
}
