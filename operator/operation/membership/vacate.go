package membership

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/operator/verdict"
)

// Vacate has the volume of a member outlive its claim, and deletes the claim, which was read a
// moment ago, of an etcd of which nothing runs any more. It is done when the claim is gone,
// which is known when it is read again.
func (c *Change) Vacate(ctx context.Context, ordinal int, claim *corev1.PersistentVolumeClaim) verdict.Verdict {
	if claim.DeletionTimestamp != nil {
		return c.changing("PersistentVolumeClaim %s is terminating", claim.Name)
	}
	retained, err := c.retained(ctx, claim)
	switch {
	case !retained && err == nil:
		return c.retain(ctx, ordinal, claim)
	case !retained:
		return c.notRetained(ordinal, claim, err)
	}
	if err := c.Writer().DeleteClaim(ctx, claim); err != nil {
		return verdict.Failed(err)
	}
	return c.changing("PersistentVolumeClaim %s is deleted, and its volume is kept", claim.Name).In(verdict.AtOnce)
}
