// Package tokens replaces pods whose token the host cluster refuses.
//
// A token in a pod is bound to the UID of its ServiceAccount. When that was deleted and
// made again, the host cluster refuses the tokens of pods that are older, and kubelet,
// which knows tokens by the name of the ServiceAccount alone, keeps them until they are
// due: a server of an aggregated registry could not ask the host cluster who calls and
// what they may, and no replica of a controller could lead. Other pods have no token.
package tokens

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
)

// renewed is how long after its ServiceAccount was made again every pod has another
// token: kubelet fetches one when 80 % of an hour have passed.
const renewed = 50 * time.Minute

// Holders are the pods of a Deployment that have tokens of one ServiceAccount. All fields
// but Wait are required.
type Holders struct {
	*operand.Objects
	// What names the pods in messages, such as "servers".
	What string
	// Account is the suffix of the ServiceAccount's name after the registry's.
	Account    string
	Deployment *appsv1.Deployment
	Pods       []corev1.Pod
	// Wait is what pods that are ready are not replaced before; "" for nothing.
	Wait string
	// Replaced is told which pod was evicted, and why.
	Replaced func(pod, why string)
}

// Renew replaces one pod whose token the host cluster refuses, one that is not ready
// first, and is complete when there is none. Otherwise it also returns what is being
// replaced. Don't call it while the Deployment is rolled out, which replaces all pods.
func (h Holders) Renew(ctx context.Context) (rolling string, v verdict.Verdict) {
	orphaned, err := h.orphaned(ctx)
	if err != nil {
		return "", verdict.Failed(err)
	}
	if len(orphaned) == 0 {
		return "", verdict.Verdict{}
	}
	rolling = fmt.Sprintf("%s: %d of %d are older than ServiceAccount %s, which was deleted and recreated, and kube-apiserver may reject their tokens", h.What, len(orphaned), len(h.Pods), h.Name(h.Account))
	return rolling, turn.Announce(rolling, h.replace(ctx, orphaned, rolling))
}

// orphaned returns the pods that are older than their ServiceAccount, and whose token may
// be of the one before.
func (h Holders) orphaned(ctx context.Context) ([]corev1.Pod, error) {
	account := informers.MetadataOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := h.Client.Get(ctx, h.Key(h.Account), account); err != nil {
		return nil, client.IgnoreNotFound(err) // one that was just applied is not seen yet
	}
	made := account.CreationTimestamp
	if h.Now.Sub(made.Time) > renewed {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(h.Pods), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !pod.CreationTimestamp.Before(&made)
	}), nil
}

// replace replaces the next of the pods, as soon as that may be.
func (h Holders) replace(ctx context.Context, orphaned []corev1.Pod, why string) verdict.Verdict {
	wait := func(format string, args ...any) verdict.Verdict {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, format, args...).In(verdict.Soon)
	}
	if h.ReadOnly() {
		return wait("nothing is changed now; kubelet renews their tokens within an hour").In(verdict.Vigil)
	}
	next := &orphaned[0]
	if i := slices.IndexFunc(orphaned, func(pod corev1.Pod) bool { return !diagnose.Ready(&pod) }); i >= 0 {
		next = &orphaned[i] // there is nothing to interrupt
	} else if h.Wait != "" {
		return wait("%s is next, once %s", next.Name, h.Wait)
	} else if turn.Replacing(h.Now, h.Deployment, h.Pods) {
		return wait("%s is next, once the others are ready", next.Name)
	}
	if err := h.Writer().Evict(ctx, next); err != nil {
		return turn.NotReplaced(next, err)
	}
	h.Replaced(next.Name, why)
	return wait("%s is being replaced", next.Name)
}
