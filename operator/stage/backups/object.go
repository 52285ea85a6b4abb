package backups

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
)

// backupsOf returns the backups of a registry, as the cache has them, and apart from them those
// that can't be decoded. What is written about one is refused when it has changed since.
func backupsOf(ctx context.Context, reader client.Reader, key client.ObjectKey) (out, undecodable []*operatorv1alpha1.ClusterRegistryBackup, err error) {
	list := &operatorv1alpha1.ClusterRegistryBackupList{}
	if err := reader.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("list the backups of %s: %w", key, err)
	}
	for i := range list.Items {
		b := &list.Items[i]
		switch of := b.Spec.RegistryRef.Name; {
		case informers.Undecodable(b) && (of == key.Name || of == ""):
			undecodable = append(undecodable, b)
		case of == key.Name:
			out = append(out, b)
		}
	}
	return out, undecodable, nil
}

// errRequestNotStored is why a backup would be verified again without end: that it was is not
// recorded.
var errRequestNotStored = errors.New("the host cluster does not store status.verifyRequest of a ClusterRegistryBackup, so no backup can be verified again: its CustomResourceDefinition clusterregistrybackups.operator.clusterregistry.io is of an earlier release than the operator; apply the one of the operator's release")

// enter brings a backup to a phase, and records that before anything follows from it.
func enter(ctx context.Context, c client.Client, b *operatorv1alpha1.ClusterRegistryBackup, change func(*operatorv1alpha1.ClusterRegistryBackup)) error {
	before := b.DeepCopy()
	change(b)
	if apiequality.Semantic.DeepEqual(before.Status, b.Status) {
		return nil
	}
	written := b.DeepCopy()
	err := c.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		*b = *before
		return err
	}
	b.ResourceVersion = written.ResourceVersion
	if b.Status.VerifyRequest != "" && written.Status.VerifyRequest == "" {
		return errRequestNotStored
	}
	return nil
}

// finalize changes nothing of a backup but its finalizers, of which the cache has only the
// operator's own, unless someone else has changed the backup since it was read.
func finalize(ctx context.Context, c client.Client, b *operatorv1alpha1.ClusterRegistryBackup, change func(client.Object, string) bool) error {
	now := &unstructured.Unstructured{} // which no cache has
	now.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackup"))
	if err := c.Get(ctx, client.ObjectKeyFromObject(b), now); err != nil {
		return err
	}
	before := now.DeepCopy()
	before.SetResourceVersion(b.ResourceVersion)
	change(now, operatorv1alpha1.FinalizerBackup)
	if err := c.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	b.ResourceVersion = now.GetResourceVersion()
	change(b, operatorv1alpha1.FinalizerBackup)
	return nil
}

// deleteBackup deletes the object of a backup as it was read.
func (s *Stage) deleteBackup(ctx context.Context, b *operatorv1alpha1.ClusterRegistryBackup) error {
	return client.IgnoreNotFound(s.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion}))
}

// createBackup creates a backup that something waits for. One that another operator has created,
// or that the cache does not have yet, is the same. One of another registry is in the way.
func (s *Stage) createBackup(ctx context.Context, name string, reason operatorv1alpha1.BackupReason) error {
	err := s.Client.Create(ctx, s.newBackup(name, reason))
	if apierrors.IsAlreadyExists(err) {
		other := &operatorv1alpha1.ClusterRegistryBackup{}
		if err = s.Live.Get(ctx, s.Named(name), other); err == nil && other.Spec.RegistryRef.Name != s.Registry.Name {
			return fmt.Errorf("ClusterRegistryBackup %s is in the way: it is of ClusterRegistry %s; delete it", name, other.Spec.RegistryRef.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("create ClusterRegistryBackup %s: %w", name, err)
	}
	return nil
}

// newBackup returns a backup that the operator takes for a reason.
func (s *Stage) newBackup(name string, reason operatorv1alpha1.BackupReason) *operatorv1alpha1.ClusterRegistryBackup {
	b := &operatorv1alpha1.ClusterRegistryBackup{Spec: operatorv1alpha1.ClusterRegistryBackupSpec{
		RegistryRef: operatorv1alpha1.LocalObjectReference{Name: s.Registry.Name}, DeletionPolicy: operatorv1alpha1.BackupDeletionPolicyRetain}}
	b.Namespace, b.Name = s.Registry.Namespace, name
	b.Labels = map[string]string{operatorv1alpha1.LabelRegistry: s.Registry.Name}
	b.Annotations = map[string]string{operatorv1alpha1.AnnotationBackupReason: string(reason)}
	return b
}
