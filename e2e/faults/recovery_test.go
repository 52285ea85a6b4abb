package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestRecovery has an etcd with three members replace one that has lost its data, when a
// person names it. Then it recovers the etcd, of which two members have lost their data under
// load, with the data of the one that is left, which is not the first one. The operator is
// killed in each phase. What is left is all that was acknowledged up to a revision, at revisions
// that no client has seen, and three members serve it in the end. The registry is a part of the
// host's API, whose namespaces come and go all the time (framework.hostProbe).
func TestRecovery(t *testing.T) {
	t.Parallel() // what is lost is its own
	recovers(t, aggregated, 3, 1, 0)
}

// TestMatrixRecoveryOfFive does that with the fourth member of five.
func TestMatrixRecoveryOfFive(t *testing.T) { recovers(t, independent, 5, 3, 0) }

// TestMatrixRecoveryWithFirst does that with the first member of three, five minutes after the
// others were lost.
func TestMatrixRecoveryWithFirst(t *testing.T) { recovers(t, aggregated, 3, 0, 5*time.Minute) }

// aggregated returns a registry that is a part of the host's API, of which there is one at a time.
func aggregated(e *framework.Env, members int32) *operatorv1alpha1.ClusterRegistry {
	registry := e.Sample("aggregated-ha.yaml")
	registry.Spec.Controllers, registry.Spec.Etcd.Replicas = nil, members
	return registry
}

func recovers(t *testing.T, of func(*framework.Env, int32) *operatorv1alpha1.ClusterRegistry, members int32, survivor int, outage time.Duration) {
	e := framework.New(t).WithOperator()
	registry := of(e, members)
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{} // a person decides
	e.Install(registry)
	e.WaitReady(registry)
	replacedByName(t, e, registry, func(lost operatorv1alpha1.EtcdMember) {
		e.LoseMembers(registry, []operatorv1alpha1.EtcdMember{lost})
	})
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: registry.Status.Etcd.Members[survivor].Name, AcceptDataLossUpTo: 1 << 40, ApprovedFor: "a-loss-of-before"}
	})
	cluster, etcd := registry.Status.Etcd.ClusterID, registry.Status.Etcd.Members
	writers := framework.StartWriters(t, e.RegistryConfig(registry), "before", 20)
	e.Eventually("writes", func(ctx context.Context) error {
		list, err := clusters(ctx, e, registry)
		if err == nil && len(list) < 500 {
			err = fmt.Errorf("there are %d clusters", len(list))
		}
		return err
	})
	e.LoseMembers(registry, slices.Delete(slices.Clone(etcd), survivor, survivor+1)[:members/2+1])
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost,
		"is approved for the loss a-loss-of-before, and this one is "+cluster)
	writers.Wait()
	written, highest := writers.Acknowledged()
	left := registry.Status.Recovery
	t.Logf("%d writes were acknowledged, up to revision %d; left is %+v", written, highest, left)

	claims := map[string]corev1.PersistentVolumeClaim{}
	for _, member := range etcd {
		var claim corev1.PersistentVolumeClaim
		if err := e.Get(t.Context(), "data-"+member.Name, &claim); err != nil {
			t.Fatal(err)
		}
		claims[member.Name] = claim
	}
	time.Sleep(outage)
	approved := time.Now()
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Recovery.ApprovedFor = left.ID })
	for _, phase := range []operatorv1alpha1.RecoveryPhase{operatorv1alpha1.RecoveryStopping, operatorv1alpha1.RecoveryRestoring} {
		e.Eventually("the recovery to be in phase "+string(phase)+", or past it", func(ctx context.Context) error {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
				return err
			}
			now := registry.Status.Recovery
			if past := registry.Status.Recovered != nil || now != nil && now.Phase == operatorv1alpha1.RecoveryRestoring; !past && (now == nil || now.Phase != phase) {
				return fmt.Errorf("the recovery is %+v", now)
			}
			return nil
		})
		if err := e.KillOperator(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.WaitRecovered(registry, members)
	recovered := registry.Status.Recovered
	served := time.Duration(0)
	if available := meta.FindStatusCondition(registry.Status.Conditions, operatorv1alpha1.ConditionAvailable); available != nil {
		served = available.LastTransitionTime.Sub(approved)
	}
	t.Logf("recovered: %+v; from the approval, clients were served after %s, and %d members were ready after %s", recovered, served.Round(time.Second), members, time.Since(approved).Round(time.Second))
	if recovered == nil || recovered.ID != left.ID || recovered.Name != etcd[survivor].Name || registry.Status.Recovery != nil || registry.Status.Etcd.ClusterID == cluster {
		t.Fatalf("recovered is %+v, and left %+v, of etcd %+v", recovered, registry.Status.Recovery, registry.Status.Etcd)
	}
	checkRecovered(t, e, registry, writers, highest, recovered.Revision)
	for name, claim := range claims {
		volume := &corev1.PersistentVolume{}
		err := e.Client.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume)
		if used := name == etcd[survivor].Name; err != nil || !used && volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("the volume of %s is %s: %v", name, volume.Spec.PersistentVolumeReclaimPolicy, err)
		} else if !used {
			_ = e.Client.Delete(context.Background(), volume)
		}
	}
}

// checkRecovered reads what is left, and writes more: revisions rise above all that clients
// have seen, and a watch from before is told to list again.
func checkRecovered(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, writers *framework.Writers, highest, last int64) {
	t.Helper()
	stored, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acknowledged writes are lost, of those after revision %d", writers.CheckPrefix(t, stored, last), last)
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	e.CheckOldWatch(registry, highest)
	created, err := clients.ClusterregistryV1beta1().Clusters().Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "after-the-recovery"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := strconv.ParseInt(created.ResourceVersion, 10, 64); err != nil || at <= last+contract.RevisionBump || at <= highest {
		t.Errorf("what was written after the recovery is of revision %s, and clients had seen %d (%v)", created.ResourceVersion, highest, err)
	}
}

// clusters returns those of a registry, by name.
func clusters(ctx context.Context, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) (map[string]v1beta1.Cluster, error) {
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		return nil, err
	}
	list, err := clients.ClusterregistryV1beta1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]v1beta1.Cluster{}
	for _, cluster := range list.Items {
		out[cluster.Name] = cluster
	}
	return out, nil
}
