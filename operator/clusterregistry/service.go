package clusterregistry

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
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
		if err := r.writer(s).ApplyFrom(ctx, withNodePort(object, s.knownNodePort()), object); err != nil {
			return err
		}
	}
	return nil
}

// knownNodePort returns the node port that clients know and that the spec does not
// name, 0 when there is none. Of the URLs that clients are given, only those of node
// ports have a port: all other Services serve at 443.
func (s *scope) knownNodePort() int32 {
	service, endpoint := s.registry.Spec.Server.Service, s.registry.Status.Endpoint
	if s.registry.Spec.Mode != operatorv1alpha1.ModeIndependent || service == nil || service.Type != corev1.ServiceTypeNodePort || service.NodePort != 0 || endpoint == nil {
		return 0
	}
	at, err := url.Parse(endpoint.URL)
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if err != nil {
		return 0
	}
	return int32(port)
}

// withNodePort returns a Service that asks for a node port, nil without one.
func withNodePort(service *unstructured.Unstructured, port int32) *unstructured.Unstructured {
	ports, found, err := unstructured.NestedSlice(service.Object, "spec", "ports")
	if port == 0 || err != nil || !found || len(ports) == 0 {
		return nil
	}
	ports[0].(map[string]any)["nodePort"] = int64(port)
	out := service.DeepCopy()
	if unstructured.SetNestedSlice(out.Object, ports, "spec", "ports") != nil {
		return nil
	}
	return out
}

// forgetEndpoint takes an address back that leads nowhere, unless it is the record of
// the node port that the Service is to have again.
func (s *scope) forgetEndpoint() {
	if s.knownNodePort() == 0 {
		s.registry.Status.Endpoint = nil
	}
}

// notServed returns what the host has against the Service, nil when it has nothing.
func (s *scope) notServed(err error) verdict.Verdict {
	if err == nil {
		return done
	}
	why := refusedPort(err)
	if why == "" {
		return failed(err)
	}
	port := s.knownNodePort()
	if service := s.registry.Spec.Server.Service; service != nil && service.NodePort != 0 {
		port = service.NodePort
	}
	// It is free a moment after the Service that had it is gone, which no watch reports.
	return verdict.Waiting(operatorv1alpha1.ReasonNodePortRefused, "the host cluster refuses Service %s its node port %d (%s): delete or change the Service that has that port, or set spec.server.service.nodePort to another one and give clients the kubeconfig again",
		s.registry.Name+contract.ServerSuffix, port, why).In(soon)
}

// refusedPort returns why the host refuses a Service its node port, nothing when that
// is not what an error is about.
func refusedPort(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	causes := status.Status().Details.Causes
	i := slices.IndexFunc(causes, func(cause metav1.StatusCause) bool { return cause.Field == "spec.ports[0].nodePort" })
	if i < 0 {
		return ""
	}
	return causes[i].Message
}
