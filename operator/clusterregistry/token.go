package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// A token in a pod is bound to the UID of its ServiceAccount. When that was deleted and
// made again, the host refuses the tokens of pods that are older, and kubelet, which
// knows tokens by the name of the ServiceAccount alone, keeps them until they are due:
// a server of an aggregated registry could not ask the host who calls and what they
// may. So such servers are replaced, one at a time. No other pod has a token.

// tokenRenewed is how long after its ServiceAccount was made again every pod has
// another token: kubelet fetches one when 80 % of an hour have passed.
const tokenRenewed = 50 * time.Minute

// orphaned returns the servers that are older than their ServiceAccount, and whose
// token may be of the one before.
func (r *Reconciler) orphaned(ctx context.Context, s *scope, pods []corev1.Pod) ([]corev1.Pod, error) {
	if s.registry.Spec.Mode != operatorv1alpha1.ModeAggregated {
		return nil, nil // their servers have no token
	}
	account := informers.MetadataOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := r.Client.Get(ctx, s.key(contract.ServerSuffix), account); err != nil {
		return nil, client.IgnoreNotFound(err) // one that was just applied is not seen yet
	}
	made := account.CreationTimestamp
	if s.now.Sub(made.Time) > tokenRenewed {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !pod.CreationTimestamp.Before(&made)
	}), nil
}

// renewTokens replaces one server whose token the host refuses, and is complete when
// there is none. While servers are being rolled out, they are replaced anyway.
func (r *Reconciler) renewTokens(ctx context.Context, s *scope, deployment *appsv1.Deployment, pods []corev1.Pod) verdict.Verdict {
	orphaned, err := r.orphaned(ctx, s, pods)
	if err != nil {
		return verdict.Failed(err)
	}
	if len(orphaned) == 0 || r.rollingOut(s, deployment) {
		return done
	}
	s.rolling = fmt.Sprintf("servers: %d of %d are older than ServiceAccount %s, which was deleted and recreated, and kube-apiserver may reject their tokens", len(orphaned), len(pods), s.registry.Name+contract.ServerSuffix)
	wait := func(format string, args ...any) verdict.Verdict {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, s.rolling+"; "+format, args...).In(verdict.Soon)
	}
	if s.readOnly {
		return wait("nothing is changed now; kubelet renews their tokens within an hour").In(vigil)
	}
	next := &orphaned[0]
	if i := slices.IndexFunc(orphaned, func(pod corev1.Pod) bool { return !diagnose.Ready(&pod) }); i >= 0 {
		next = &orphaned[i] // there is nothing to interrupt
	} else if s.membersRolling {
		return wait("%s is next, once the etcd members are replaced", next.Name)
	} else if replacing(s.now, deployment, pods) {
		return wait("%s is next, once the others are ready", next.Name)
	}
	if err := r.writer(s).Evict(ctx, next); err != nil {
		return notReplaced(s, next, err)
	}
	r.event(s, corev1.EventTypeNormal, "ServerReplaced", operatorv1alpha1.ConditionServerReady, "pod %s is replaced by another: %s", next.Name, s.rolling)
	return wait("%s is being replaced", next.Name)
}
