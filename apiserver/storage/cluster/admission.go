package cluster

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// Complete lets admission see clusters whole: before anything of it sees a changed
// cluster, what the version of the request can't show of it is put back. What
// admission then sets stays, whatever version it knows and the request came in.
// Next is the rest of admission, or nil. This is no plugin that can be turned off,
// for every update through an older version would lose data.
func Complete(next admission.Interface) admission.Interface { return complete{next} }

type complete struct{ next admission.Interface }

var (
	_ admission.MutationInterface   = complete{}
	_ admission.ValidationInterface = complete{}
)

// Handles is true for updates and for what the rest handles.
func (c complete) Handles(operation admission.Operation) bool {
	return operation == admission.Update || c.next != nil && c.next.Handles(operation)
}

// Admit completes a changed cluster, and then asks the rest.
func (c complete) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Update && a.GetResource().GroupResource() == clusterregistry.Resource("clusters") {
		written, ok := a.GetObject().(*clusterregistry.Cluster)
		stored, known := a.GetOldObject().(*clusterregistry.Cluster)
		if ok && known {
			form.Restore(a.GetResource().Version, written, stored)
		}
	}
	if next, ok := c.next.(admission.MutationInterface); ok && next.Handles(a.GetOperation()) {
		return next.Admit(ctx, a, o)
	}
	return nil
}

// Validate asks the rest.
func (c complete) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if next, ok := c.next.(admission.ValidationInterface); ok && next.Handles(a.GetOperation()) {
		return next.Validate(ctx, a, o)
	}
	return nil
}
