package backups

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Kind knows whether the operator can read ClusterRegistryBackups. An operator that was
// upgraded before its CustomResourceDefinitions and rights has to drive registries all the same,
// without backups, and to take these up as soon as it can.
type Kind struct {
	// Watch has the operator watch them, nil where nothing is watched. It is called once they
	// can be read, again when it failed, and then no more.
	Watch func() error

	mu             sync.Mutex
	watching, told bool
}

// unreadableError says why the operator can't read ClusterRegistryBackups, and what to do.
type unreadableError struct{ why error }

// Error is for a person.
func (e *unreadableError) Error() string {
	return fmt.Sprintf("the operator can't read ClusterRegistryBackups: apply the CustomResourceDefinitions and the roles of the operator's release (%v)", e.why)
}

// Readable returns an unreadableError as long as the operator can't read the backups of a
// namespace, and has them watched from then on.
func (k *Kind) Readable(ctx context.Context, live client.Reader, namespace string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watching || k.Watch == nil {
		return nil
	}
	// Not through the cache, which waits until a kind is served.
	list := &metav1.PartialObjectMetadataList{} // which any backup can be decoded to
	list.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackupList"))
	err := live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		err = &unreadableError{err}
		if !k.told {
			logf.FromContext(ctx).Error(err, "registries are managed without backups until then")
			k.told = true
		}
		return err
	case err != nil:
		return fmt.Errorf("find out whether ClusterRegistryBackups can be read: %w", err)
	}
	if err := k.Watch(); err != nil {
		return fmt.Errorf("watch ClusterRegistryBackups: %w", err)
	}
	k.watching = true
	return nil
}
