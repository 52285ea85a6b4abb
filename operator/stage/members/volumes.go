package members

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// grow has claims that are smaller than a person asks for request that size, where their
// StorageClass allows it. Nothing else waits for them: etcd's quota follows the volumes,
// when the host has resized them. It returns when to try again, zero when nothing has to be.
func (s *Stage) grow(ctx context.Context) (again time.Duration) {
	if s.ReadOnly() {
		return 0
	}
	for _, growth := range s.Volumes.Growths(s.Registry) {
		why, err := s.resize(ctx, growth)
		if apierrors.IsConflict(err) {
			// The host cluster or a person changed the claim since it was read, which
			// says nothing about its size.
			again = verdict.Soon
			continue
		}
		if why != "" {
			s.Volumes.Hold(growth.Claim.Name, why)
			continue
		}
		s.Event(corev1.EventTypeNormal, "VolumeResized", operatorv1alpha1.ConditionEtcdReady, "PersistentVolumeClaim %s requests %s from now on", growth.Claim.Name, growth.Size.String())
	}
	return again
}

// resize has a claim request more, or says why it can't grow and what can be done, with the
// host cluster's error where it refused.
func (s *Stage) resize(ctx context.Context, growth volumes.Growth) (why string, err error) {
	claim, back := growth.Claim, ""
	if has := claim.Status.Capacity[corev1.ResourceStorage]; growth.IsMember {
		back = fmt.Sprintf(", or set spec.etcd.storage.size to %s", has.String())
	}
	name := claim.Spec.StorageClassName
	if name == nil || *name == "" {
		return fmt.Sprintf("PersistentVolumeClaim %s has no StorageClass, and so can't grow: replace its volume by a larger one%s", claim.Name, back), nil
	}
	class := &storagev1.StorageClass{}
	err = s.Live.Get(ctx, client.ObjectKey{Name: *name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("PersistentVolumeClaim %s can't grow, since its StorageClass %s does not exist: create it with allowVolumeExpansion, if its provisioner can expand volumes%s", claim.Name, *name, back), nil
	case err == nil && (class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion):
		return fmt.Sprintf("PersistentVolumeClaim %s can't grow, since its StorageClass %s does not allow it: set allowVolumeExpansion there, if its provisioner can expand volumes%s", claim.Name, *name, back), nil
	}
	// Where the class can't be read, the host knows.
	if err := s.Writer().Resize(ctx, claim, growth.Size); err != nil {
		return fmt.Sprintf("PersistentVolumeClaim %s of StorageClass %s can't grow to %s: %s%s", claim.Name, *name, growth.Size.String(), err, back), err
	}
	return "", nil
}

// volumesNoted returns a verdict that is done with a note on claims that are not what
// the spec asks for: they grow, or they can't.
func (s *Stage) volumesNoted(v verdict.Verdict) verdict.Verdict {
	differ := s.Volumes.Differ(s.Registry)
	switch {
	case differ == "":
		return v
	case s.Volumes.Growing(s.Registry):
		// A claim that has lost its labels is not watched.
		return v.Note(operatorv1alpha1.ReasonVolumesGrowing, differ).In(verdict.Backstop)
	}
	return v.Note(operatorv1alpha1.ReasonVolumesDiffer, differ)
}
