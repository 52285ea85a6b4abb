package address

import (
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// ServiceKind is the kind of the rendered object that leads to the servers.
const ServiceKind = "Service"

// ApplyService applies the Service of the servers. One that is made again asks for
// the node port that clients know. The host keeps that of one which is there, so
// that it is not asked for then.
func ApplyService(ctx context.Context, o *operand.Objects) error {
	for _, object := range o.Rendered.Stages[render.StageCertificates] {
		if object.GetKind() != ServiceKind {
			continue
		}
		if err := o.Enlist(ctx, object); err != nil {
			return err
		}
		if err := o.Writer().ApplyFrom(ctx, WithNodePort(object, KnownNodePort(o.Registry)), object); err != nil {
			return err
		}
	}
	return nil
}

// Forget takes an address back that leads nowhere, unless it is the record of
// the node port that the Service is to have again.
func Forget(o *operand.Objects) {
	if KnownNodePort(o.Registry) == 0 {
		o.Registry.Status.Endpoint = nil
	}
}

// Refused returns what the host has against the Service, nil when it has nothing.
func Refused(o *operand.Objects, err error) verdict.Verdict {
	if err == nil {
		return verdict.Verdict{}
	}
	why := NodePortRefused(err)
	if why == "" {
		return verdict.Failed(err)
	}
	port := KnownNodePort(o.Registry)
	if service := o.Registry.Spec.Server.Service; service != nil && service.NodePort != 0 {
		port = service.NodePort
	}
	// It is free a moment after the Service that had it is gone, which no watch reports.
	return verdict.Waiting(operatorv1alpha1.ReasonNodePortRefused, "the host cluster refuses Service %s its node port %d (%s): delete or change the Service that has that port, or set spec.server.service.nodePort to another one and give clients the kubeconfig again",
		o.Name(contract.ServerSuffix), port, why).In(verdict.Soon)
}
