package server

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
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/turn"
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
func (s *Stage) orphaned(ctx context.Context, pods []corev1.Pod) ([]corev1.Pod, error) {
	if s.Registry.Spec.Mode != operatorv1alpha1.ModeAggregated {
		return nil, nil // their servers have no token
	}
	account := informers.MetadataOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := s.Client.Get(ctx, s.Key(contract.ServerSuffix), account); err != nil {
		return nil, client.IgnoreNotFound(err) // one that was just applied is not seen yet
	}
	made := account.CreationTimestamp
	if s.Now.Sub(made.Time) > tokenRenewed {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !pod.CreationTimestamp.Before(&made)
	}), nil
}

// renewTokens replaces one server whose token the host refuses, and is complete when
// there is none. While servers are being rolled out, they are replaced anyway.
func (s *Stage) renewTokens(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) verdict.Verdict {
	orphaned, err := s.orphaned(ctx, pods)
	if err != nil {
		return verdict.Failed(err)
	}
	if len(orphaned) == 0 || turn.RollingOut(s.Objects, deployment) {
		return done
	}
	s.found.Rolling = fmt.Sprintf("servers: %d of %d are older than ServiceAccount %s, which was deleted and recreated, and kube-apiserver may reject their tokens", len(orphaned), len(pods), s.Registry.Name+contract.ServerSuffix)
	wait := func(format string, args ...any) verdict.Verdict {
		return turn.Announce(s.found.Rolling, verdict.Waiting(operatorv1alpha1.ReasonProgressing, format, args...).In(verdict.Soon))
	}
	if s.ReadOnly() {
		return wait("nothing is changed now; kubelet renews their tokens within an hour").In(verdict.Vigil)
	}
	next := &orphaned[0]
	if i := slices.IndexFunc(orphaned, func(pod corev1.Pod) bool { return !diagnose.Ready(&pod) }); i >= 0 {
		next = &orphaned[i] // there is nothing to interrupt
	} else if s.MembersReplacing {
		return wait("%s is next, once the etcd members are replaced", next.Name)
	} else if turn.Replacing(s.Now, deployment, pods) {
		return wait("%s is next, once the others are ready", next.Name)
	}
	if err := s.Writer().Evict(ctx, next); err != nil {
		return turn.Announce(s.found.Rolling, turn.NotReplaced(next, err))
	}
	s.Event(corev1.EventTypeNormal, "ServerReplaced", operatorv1alpha1.ConditionServerReady, "pod %s is replaced by another: %s", next.Name, s.found.Rolling)
	return wait("%s is being replaced", next.Name)
}
