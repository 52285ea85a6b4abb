package clusterregistry

import (
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/endpoint"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

const serviceKind = "Service"

// applyService applies the Service of the servers. One that is made again asks for
// the node port that clients know. The host keeps that of one which is there, so
// that it is not asked for then.
func (r *Reconciler) applyService(ctx context.Context, s *scope) error {
	for _, object := range s.rendered.Stages[render.StageCertificates] {
		if object.GetKind() != serviceKind {
			continue
		}
		if err := r.enlist(ctx, s, object); err != nil {
			return err
		}
		if err := r.writer(s).ApplyFrom(ctx, endpoint.WithNodePort(object, endpoint.KnownNodePort(s.registry)), object); err != nil {
			return err
		}
	}
	return nil
}

// forgetEndpoint takes an address back that leads nowhere, unless it is the record of
// the node port that the Service is to have again.
func (s *scope) forgetEndpoint() {
	if endpoint.KnownNodePort(s.registry) == 0 {
		s.registry.Status.Endpoint = nil
	}
}

// notServed returns what the host has against the Service, nil when it has nothing.
func (s *scope) notServed(err error) verdict.Verdict {
	if err == nil {
		return done
	}
	why := endpoint.NodePortRefused(err)
	if why == "" {
		return verdict.Failed(err)
	}
	port := endpoint.KnownNodePort(s.registry)
	if service := s.registry.Spec.Server.Service; service != nil && service.NodePort != 0 {
		port = service.NodePort
	}
	// It is free a moment after the Service that had it is gone, which no watch reports.
	return verdict.Waiting(operatorv1alpha1.ReasonNodePortRefused, "the host cluster refuses Service %s its node port %d (%s): delete or change the Service that has that port, or set spec.server.service.nodePort to another one and give clients the kubeconfig again",
		s.registry.Name+contract.ServerSuffix, port, why).In(verdict.Soon)
}
