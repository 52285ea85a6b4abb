package clusterregistry

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/endpoint"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/verdict"
)

// kubeconfigKey is the key of the Secret with the administrator's kubeconfig.
const kubeconfigKey = "kubeconfig"

// endpoint is complete when the registry has an address that its certificate is
// valid for, and a kubeconfig that leads there. Both follow the Service that there
// is, also when the host refuses to change it.
func (r *Reconciler) endpoint(ctx context.Context, s *scope) verdict.Verdict {
	refused := s.notServed(unlessReadOnly(r.applyService(ctx, s)))
	reached := r.reach(ctx, s)
	if !refused.Complete() {
		return refused
	}
	return reached
}

// reach is complete when clients can reach the registry through its Service.
func (r *Reconciler) reach(ctx context.Context, s *scope) verdict.Verdict {
	port, err := endpoint.Port(ctx, r.Client, s.key(contract.ServerSuffix))
	if err != nil {
		return verdict.Failed(err)
	}
	address := s.serverName()
	if len(s.addresses) > 0 {
		address = s.addresses[0]
	} else if service := s.registry.Spec.Server.Service; service != nil && service.Type != corev1.ServiceTypeClusterIP {
		s.forgetEndpoint()
		return verdict.Waiting(operatorv1alpha1.ReasonAddressPending, "Service %s of type %s has no address yet: the host cluster's cloud provider assigns one, or name one in spec.server.service.hostnames", s.registry.Name+contract.ServerSuffix, service.Type)
	}
	if port == 0 {
		s.forgetEndpoint()
		return verdict.Waiting(operatorv1alpha1.ReasonAddressPending, "Service %s has no port yet", s.registry.Name+contract.ServerSuffix).In(verdict.Soon)
	}
	url := endpoint.URL(address, port)
	if err := r.tellMoved(ctx, s, url); err != nil {
		return verdict.Failed(err)
	}
	s.registry.Status.Endpoint = &operatorv1alpha1.Endpoint{URL: url, CABundle: s.trust.Serving}
	if v := r.kubeconfig(ctx, s, url); !v.Complete() {
		return v
	}
	if certificates := s.results[operatorv1alpha1.ConditionCertificatesReady]; !certificates.Complete() {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "the servers' certificate may not be valid for %s yet: %s", address, certificates.Message)
	}
	if v := r.shown(ctx, s, address); !v.Complete() {
		return v
	}
	if err := health.Refused(ctx, net.JoinHostPort(address, strconv.Itoa(int(port)))); err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "Service %s does not reach the servers yet: %s", s.registry.Name+contract.ServerSuffix, err).In(verdict.Soon)
	}
	return done
}

// tellMoved emits an event when clients are to go elsewhere than their kubeconfig
// says, which is asked when the status has no address or another one.
func (r *Reconciler) tellMoved(ctx context.Context, s *scope, url string) error {
	if s.before.Endpoint != nil && s.before.Endpoint.URL == url {
		return nil
	}
	content, err := r.secretValue(ctx, s.registry.Namespace, s.registry.Name+contract.KubeconfigSuffix, kubeconfigKey)
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(content)
	if err != nil || config.Clusters[s.registry.Name] == nil {
		return nil //nolint:nilerr // no client has an address from a kubeconfig that is none
	}
	if from := config.Clusters[s.registry.Name].Server; from != url {
		r.event(s, corev1.EventTypeWarning, operatorv1alpha1.ReasonAddressChanged, operatorv1alpha1.ConditionEndpointReady,
			"the registry's address is now %s instead of %s: give clients the kubeconfig in Secret %s%s again", url, from, s.registry.Name, contract.KubeconfigSuffix)
	}
	return nil
}

// shown is complete when every server presents a certificate that is valid for the
// clients' address. One that was renewed reaches the pods within a minute or so.
func (r *Reconciler) shown(ctx context.Context, s *scope, address string) verdict.Verdict {
	if address == s.serverName() {
		return done
	}
	pods, err := r.pods(ctx, s, componentServer)
	if err != nil {
		return verdict.Failed(err)
	}
	answers, err := r.askServers(ctx, s, pods, address, s.trust.Serving)
	if err != nil {
		return verdict.Failed(err)
	}
	for _, answer := range answers {
		var invalid x509.HostnameError
		if errors.As(answer.err, &invalid) {
			return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "pod %s does not present the certificate for %s yet; kubelet updates it within a minute or two", answer.pod, address).In(verdict.Soon)
		}
	}
	return done
}

// kubeconfig writes the administrator's kubeconfig, and again when its certificate was
// renewed.
func (r *Reconciler) kubeconfig(ctx context.Context, s *scope, url string) verdict.Verdict {
	admin, err := r.secret(ctx, s.registry.Namespace, s.registry.Name+contract.AdminSuffix)
	if err != nil {
		return verdict.Failed(err)
	}
	if admin == nil || len(admin.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "Secret %s with the administrator's certificate does not exist yet", s.registry.Name+contract.AdminSuffix).In(verdict.Soon)
	}
	name := s.registry.Name
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: s.trust.Serving}
	config.AuthInfos[name+contract.AdminSuffix] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.Data[corev1.TLSCertKey], ClientKeyData: admin.Data[corev1.TLSPrivateKeyKey]}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name + contract.AdminSuffix}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return verdict.Failed(err)
	}
	secret := &corev1.Secret{ObjectMeta: s.meta(contract.KubeconfigSuffix, "certificates"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{kubeconfigKey: content}}
	secret.APIVersion, secret.Kind = "v1", "Secret"
	object, err := toUnstructured(secret)
	if err != nil {
		return verdict.Failed(err)
	}
	if err := unlessReadOnly(r.apply(ctx, s, object)); err != nil {
		return verdict.Failed(err)
	}
	s.registry.Status.KubeconfigSecretRef = &operatorv1alpha1.LocalObjectReference{Name: secret.Name}
	return done
}
