package volumes

import (
	"context"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Read returns the claims of a registry whose members have these names, and the quota
// that its etcd runs with. Of an external etcd there are none.
// The reader is not to be a cache: the host is asked for each by its name, since
// neither a late cache nor a lost label may hide data, or have the quota lowered.
func Read(ctx context.Context, reader client.Reader, registry *operatorv1alpha1.ClusterRegistry, members []string) (Volumes, error) {
	found := Volumes{}
	if registry.Spec.Etcd.External != nil {
		return found, nil
	}
	for _, member := range members {
		claim, err := readClaim(ctx, reader, registry.Namespace, contract.EtcdMemberClaim(member))
		if err != nil {
			return Volumes{}, err
		}
		if claim != nil {
			found.Members = append(found.Members, *claim)
		}
	}
	set := &appsv1.StatefulSet{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: registry.Namespace, Name: registry.Name + contract.EtcdSuffix}, set)
	if client.IgnoreNotFound(err) != nil {
		return Volumes{}, err
	}
	found.Quota = runningQuota(set.Spec.Template.Spec)
	if err != nil { // members may run without it, as while it is recreated
		if found.Quota, err = podsQuota(ctx, reader, registry.Namespace, members); err != nil {
			return Volumes{}, err
		}
	}
	for i := range set.Spec.VolumeClaimTemplates {
		claim := &set.Spec.VolumeClaimTemplates[i]
		found.Template, found.TemplateClass = claim.Spec.Resources.Requests[corev1.ResourceStorage], Class(claim)
	}
	found.Snapshots, err = readClaim(ctx, reader, registry.Namespace, registry.Name+contract.SnapshotsSuffix)
	return found, err
}

// readClaim reads a claim, nil when there is none.
func readClaim(ctx context.Context, reader client.Reader, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
}

// podsQuota returns the largest quota that members' pods have, zero when there is none.
func podsQuota(ctx context.Context, reader client.Reader, namespace string, members []string) (quota int64, err error) {
	for _, member := range members {
		pod := &corev1.Pod{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: member}, pod); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
		quota = max(quota, runningQuota(pod.Spec))
	}
	return quota, nil
}

// runningQuota returns the quota that etcd has in a pod, zero when there is none.
func runningQuota(pod corev1.PodSpec) int64 {
	for _, container := range pod.Containers {
		for _, arg := range container.Args {
			text, is := strings.CutPrefix(arg, "--quota-backend-bytes=")
			if !is {
				continue
			}
			// What is not a number, etcd would not start with.
			quota, err := strconv.ParseInt(text, 10, 64)
			if err == nil && quota == 0 {
				quota = etcdDefaultQuota
			}
			return max(0, quota)
		}
	}
	return 0
}

// etcdDefaultQuota is what a quota of 0 means to etcd.
const etcdDefaultQuota = 2 << 30
