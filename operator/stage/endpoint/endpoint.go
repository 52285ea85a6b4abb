package endpoint

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/address"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/kubeconfig"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Run is done when the registry has an address that its certificate is
// valid for, and a kubeconfig that leads there. Both follow the Service that there
// is, also when the host refuses to change it.
func (s *Stage) Run(ctx context.Context) verdict.Verdict {
	refused := address.Refused(s.Objects, apply.IgnoreReadOnly(address.ApplyService(ctx, s.Objects)))
	reached := s.reach(ctx)
	if !refused.Complete() {
		return refused
	}
	return reached
}

// reach is complete when clients can reach the registry through its Service.
func (s *Stage) reach(ctx context.Context) verdict.Verdict {
	port, err := address.Port(ctx, s.Client, s.Key(contract.ServerSuffix))
	if err != nil {
		return verdict.Failed(err)
	}
	host := s.ServerName()
	if len(s.Addresses) > 0 {
		host = s.Addresses[0]
	} else if service := s.Registry.Spec.Server.Service; service != nil && service.Type != corev1.ServiceTypeClusterIP {
		address.Forget(s.Objects)
		return verdict.Waiting(operatorv1alpha1.ReasonAddressPending, "Service %s of type %s has no address yet: the host cluster's cloud provider assigns one, or name one in spec.server.service.hostnames", s.Registry.Name+contract.ServerSuffix, service.Type)
	}
	if port == 0 {
		address.Forget(s.Objects)
		return verdict.Waiting(operatorv1alpha1.ReasonAddressPending, "Service %s has no port yet", s.Registry.Name+contract.ServerSuffix).In(verdict.Soon)
	}
	url := address.URL(host, port)
	if err := s.tellMoved(ctx, url); err != nil {
		return verdict.Failed(err)
	}
	s.Registry.Status.Endpoint = &operatorv1alpha1.Endpoint{URL: url, CABundle: s.Serving}
	if v := kubeconfig.Write(ctx, s.Objects, url, s.Serving); !v.Complete() {
		return v
	}
	if !s.Certificates.Complete() {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "the servers' certificate may not be valid for %s yet: %s", host, s.Certificates.Message)
	}
	if v := s.shown(ctx, host); !v.Complete() {
		return v
	}
	return s.answers(ctx, net.JoinHostPort(host, strconv.Itoa(int(port))))
}

// tellMoved emits an event when clients are to go elsewhere than their kubeconfig
// says, which is asked when the status has no address or another one.
func (s *Stage) tellMoved(ctx context.Context, url string) error {
	if s.Before.Endpoint != nil && s.Before.Endpoint.URL == url {
		return nil
	}
	from, err := kubeconfig.Server(ctx, s.Objects)
	if err != nil {
		return err
	}
	if from != "" && from != url {
		s.Event(corev1.EventTypeWarning, operatorv1alpha1.ReasonAddressChanged, operatorv1alpha1.ConditionEndpointReady,
			"the registry's address is now %s instead of %s: give clients the kubeconfig in Secret %s%s again", url, from, s.Registry.Name, contract.KubeconfigSuffix)
	}
	return nil
}

// shown is complete when every server shows a certificate that is valid for the
// clients' address. One that was renewed reaches the pods within a minute or so.
func (s *Stage) shown(ctx context.Context, host string) verdict.Verdict {
	if host == s.ServerName() {
		return done
	}
	pods, err := s.Pods(ctx, operand.ComponentServer)
	if err != nil {
		return verdict.Failed(err)
	}
	answers, err := s.AskPods(ctx, pods, host, s.Serving)
	if err != nil {
		return verdict.Failed(err)
	}
	for _, answer := range answers {
		var invalid x509.HostnameError
		if errors.As(answer.Err, &invalid) {
			return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "pod %s does not present the certificate for %s yet; kubelet updates it within a minute or two", answer.Pod, host).In(verdict.Soon)
		}
	}
	return done
}
