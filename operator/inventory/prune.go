package inventory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/turn"
)

// Prune deletes what the registry no longer consists of, but for what is to stay for another
// reason.
func Prune(ctx context.Context, p pass.Pass, stays ...operatorv1alpha1.ObjectReference) error {
	used, err := mounted(ctx, p)
	if err != nil {
		return err
	}
	return apply.IgnoreReadOnly(p.Prune(ctx, slices.Concat(made(p), used, stays)...))
}

// mounted returns what is no longer rendered, and what pods have mounted, or would have which
// are made now: bundles of CAs, and what servers are to record. Without these no pod starts.
// There are such while members or servers are replaced by those with another one.
func mounted(ctx context.Context, p pass.Pass) ([]operatorv1alpha1.ObjectReference, error) {
	rendered := p.Rendered.Objects()
	var former []operatorv1alpha1.ObjectReference
	for _, reference := range p.Registry.Status.Inventory {
		if isMounted(p, reference) && !slices.ContainsFunc(rendered, func(o *unstructured.Unstructured) bool { return apply.Reference(o) == reference }) {
			former = append(former, reference)
		}
	}
	if len(former) == 0 {
		return nil, nil
	}
	deployment := &appsv1.Deployment{}
	if err := p.Live.Get(ctx, p.Key(contract.ServerSuffix), deployment); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	used := map[operatorv1alpha1.ObjectReference]bool{}
	err := eachPodSpec(ctx, p, deployment, func(pod corev1.PodSpec) {
		for _, reference := range former {
			used[reference] = used[reference] || mounts(pod, reference)
		}
	})
	if err != nil {
		return nil, err
	}
	// A pod of an earlier template that gets lost meanwhile is made again of that template,
	// and there may be none at this moment.
	rolling := turn.RollingOut(p.Objects, deployment)
	return slices.DeleteFunc(former, func(reference operatorv1alpha1.ObjectReference) bool {
		if isKeys(p, reference) && mayNeed(p, reference) {
			return false // there may be no pod that says so
		}
		if rolling && ofServers(p, reference) {
			return false
		}
		return !used[reference]
	}), nil
}

// isMounted reports whether an object is, by its kind and name, one that pods mount and that
// never changes: other content has another name.
func isMounted(p pass.Pass, reference operatorv1alpha1.ObjectReference) bool {
	suffixes := map[string][]string{"ConfigMap": {contract.EtcdTrustSuffix, contract.EtcdClientTrustSuffix}, "Secret": {contract.AuditSuffix, contract.EncryptionSuffix}}
	return slices.ContainsFunc(suffixes[reference.Kind], func(suffix string) bool { return strings.HasPrefix(reference.Name, p.Name(suffix)+"-") })
}

// ofServers reports whether an object that isMounted is one that servers mount.
func ofServers(p pass.Pass, reference operatorv1alpha1.ObjectReference) bool {
	return reference.Kind == "Secret" || strings.HasPrefix(reference.Name, p.Name(contract.EtcdClientTrustSuffix)+"-")
}

// isKeys reports whether an object is one of the Secrets with the keys of servers.
func isKeys(p pass.Pass, reference operatorv1alpha1.ObjectReference) bool {
	return reference.Kind == "Secret" && strings.HasPrefix(reference.Name, p.Name(contract.EncryptionSuffix)+"-")
}

// mayNeed reports whether what is stored may need the keys that a Secret has: unless it is
// recorded which keys are in use, and that everything was found to be stored under the one that
// writes. What is recorded nowhere any more, such as of a record that got lost together with the
// status, may be in that Secret alone.
func mayNeed(p pass.Pass, reference operatorv1alpha1.ObjectReference) bool {
	record := p.Identity.Record
	if p.Keys.InUse == nil || record == nil || len(record.KeyIDs) == 0 || p.Keys.Unrecorded {
		return true
	}
	return reference.Name == p.Name(contract.EncryptionSuffix)+"-"+record.Keys ||
		cmp.Or(record.StoredUnder, encryption.Identity.ID()) != p.Keys.InUse[0].ID()
}

// mounts reports whether a pod mounts a ConfigMap or a Secret.
func mounts(pod corev1.PodSpec, reference operatorv1alpha1.ObjectReference) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return reference.Kind == "ConfigMap" && v.ConfigMap != nil && v.ConfigMap.Name == reference.Name ||
			reference.Kind == "Secret" && v.Secret != nil && v.Secret.SecretName == reference.Name
	})
}

// eachPodSpec visits the specs of all pods of the registry that have not ended, and those of
// which pods are made now: of servers, of members, and of Jobs, which try again. Not from the
// cache, which has no volumes.
func eachPodSpec(ctx context.Context, p pass.Pass, deployment *appsv1.Deployment, visit func(corev1.PodSpec)) error {
	set := &appsv1.StatefulSet{}
	ours := []client.ListOption{client.InNamespace(p.Registry.Namespace), client.MatchingLabels{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: p.Registry.Name}}
	if err := p.Live.Get(ctx, p.Key(contract.EtcdSuffix), set); client.IgnoreNotFound(err) != nil {
		return err
	}
	visit(deployment.Spec.Template.Spec)
	visit(set.Spec.Template.Spec)
	err := pages.Each(ctx, p.Live, &corev1.PodList{}, func(page *corev1.PodList) bool {
		// One that was evicted stays for long, and never starts again.
		for _, pod := range operand.Running(page.Items) {
			visit(pod.Spec)
		}
		return true
	}, ours...)
	if err != nil {
		return err
	}
	return pages.Each(ctx, p.Live, &batchv1.JobList{}, func(page *batchv1.JobList) bool {
		for i := range page.Items {
			if !finished(&page.Items[i]) {
				visit(page.Items[i].Spec.Template.Spec)
			}
		}
		return true
	}, ours...)
}

// finished reports whether a Job makes no more pods.
func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}
