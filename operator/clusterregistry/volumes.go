package clusterregistry

import (
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// readVolumes returns the volumes that a registry has, as the host has them.
func (r *Reconciler) readVolumes(ctx context.Context, s *scope) (volumes.Volumes, error) {
	return volumes.Read(ctx, r.Live, s.registry, s.members)
}

// etcdQuota returns how many bytes of data a member may hold.
func (s *scope) etcdQuota() int64 { return s.volumes.EtcdQuota(s.registry) }

// volumesNoted returns a verdict that is done with a note on claims that are not what
// the spec asks for: that was so when they were taken over, and does not go away.
func (s *scope) volumesNoted(v verdict.Verdict) verdict.Verdict {
	if differ := s.volumes.Differ(s.registry); differ != "" {
		return v.Note(operatorv1alpha1.ReasonVolumesDiffer, differ)
	}
	return v
}
