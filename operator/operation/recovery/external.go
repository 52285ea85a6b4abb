package recovery

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/pass"
)

// external reports whether others run the etcd of a registry. What is recorded of it is in the
// status, and it continues with what it has, or as those bring it back.
func external(p pass.Pass) bool { return p.Registry.Spec.Etcd.External != nil }

// decideExternal remembers how far an external etcd is. Of one that went back, of which its stage
// has said so, it does what a person has approved.
func (d *Drive) decideExternal(ctx context.Context) {
	name := client.ObjectKeyFromObject(d.Registry).String()
	if d.Before.Etcd.ClusterID == "" {
		d.Revisions.Forget(name) // what is known there is of another etcd
	}
	if d.Members.Reason != operatorv1alpha1.ReasonWentBack {
		if d.Members.Complete() {
			d.Revisions.Note(name, etcd.Seen{Revision: d.Members.State.Acknowledged().Revision, Time: d.Now})
		}
		return
	}
	asked, lost := d.Registry.Spec.Recovery, d.Registry.Status.Recovery
	known := d.Before.Recovery != nil && d.Before.Recovery.ID == lost.ID // else no one can have approved it
	if known && asked != nil && asked.ApprovedFor == lost.ID {
		d.Members.Verdict = d.accept(ctx, *asked)
	}
}

// record returns what is recorded of etcd.
func (d *Drive) record() *etcd.Record {
	if external(d.Pass) {
		return identity.External(&d.Registry.Status)
	}
	return d.Identity.Record
}

// continues records that etcd continues with what it has.
func (d *Drive) continues(ctx context.Context) error {
	if external(d.Pass) {
		record := d.record().Accept(d.Members.State.Acknowledged(), d.Now)
		identity.WriteExternal(&d.Registry.Status, record, d.Members.State)
		return nil
	}
	if err := d.Identity.Write(ctx, d.record().Accept(d.Members.State.Newest(), d.Now)); err != nil {
		return fmt.Errorf("record that etcd continues with what it has: %w", err)
	}
	d.Registry.Status.Recovery = nil
	return nil
}
