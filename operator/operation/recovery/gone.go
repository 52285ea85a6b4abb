package recovery

import (
	"context"
	"fmt"
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// copyGone says that the member is without data with whose data etcd is to continue, and what a
// person does then; nothing while it may have it. What is left of the loss is said again.
func (d *Drive) copyGone(ctx context.Context) (string, error) {
	recovered := d.Recovering()
	if recovered == nil || recovered.From != operatorv1alpha1.RecoverFromMember || recovered.Phase != operatorv1alpha1.RecoveryRestoring {
		return "", nil
	}
	left, err := d.Changes.Change().Left(ctx)
	if err != nil {
		return "", err
	}
	members := d.Registry.Status.Recovery.Members
	i := slices.IndexFunc(left, func(m operatorv1alpha1.RecoveryMember) bool { return m.Name == recovered.Member })
	said := slices.IndexFunc(members, func(m operatorv1alpha1.RecoveryMember) bool { return m.Name == recovered.Member })
	if i < 0 || said < 0 {
		return "", nil
	}
	if left[i].DataGone || members[said].DataGone { // or its volume is back
		members[said] = left[i]
	}
	if !left[i].DataGone {
		return "", nil
	}
	return fmt.Sprintf("the data of member %s, with which etcd is to continue, is gone (%s): bring its volume back, or set spec.recovery to another copy (kubectl registry recover plan says which there are; this loss is %s)", recovered.Member, left[i].Message, recovered.ID), nil
}
