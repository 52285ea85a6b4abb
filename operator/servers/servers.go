// Package servers reaches the API servers of a registry: each of them at its own
// address, or all of them as clients do.
package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/direct"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/registryclient"
)

// Access is the way to the servers of one registry. All fields are required.
type Access struct {
	*operand.Objects
	// Host leads to the host cluster, through which an aggregated registry is used.
	Host *rest.Config
	// Ask returns the version of a server that is ready, at its address.
	Ask func(context.Context, health.Server) (version string, err error)
	// Dial connects to an independent registry at its name; nil means by TCP.
	Dial health.Dial
	// Handshake returns what a server shows to clients, at its address.
	Handshake func(context.Context, handshake.Server) (handshake.Shown, error)
}

// Answer is what a server said of itself.
type Answer struct {
	Pod, Address string
	Version      string
	Err          error
}

// AskPods asks every ready server at its own address, whether its certificate is valid
// for the given name and signed by one of the CAs, in PEM, and for its version.
func (a Access) AskPods(ctx context.Context, pods []corev1.Pod, name string, authorities []byte) ([]Answer, error) {
	client, err := a.administrator(ctx)
	if err != nil {
		return nil, err
	}
	var answers []Answer
	for _, pod := range operand.Ready(pods) {
		answers = append(answers, Answer{Pod: pod.Name, Address: net.JoinHostPort(pod.Status.PodIP, contract.ServerPort)})
	}
	var all sync.WaitGroup
	for i := range answers {
		answer := &answers[i]
		server := health.Server{Address: answer.Address, Name: name, CAs: authorities, Client: client}
		all.Go(func() { answer.Version, answer.Err = a.Ask(ctx, server) })
	}
	all.Wait()
	return answers, nil
}

// administrator returns the certificate to show to an independent registry, which tells
// strangers nothing; nil for an aggregated one.
func (a Access) administrator(ctx context.Context) (*tls.Certificate, error) {
	if a.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		return nil, nil
	}
	secret, err := a.Secret(ctx, a.Name(contract.AdminSuffix))
	if err != nil || secret == nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate in Secret %s: %w", secret.Name, err)
	}
	return &pair, nil
}

// RegistryClient returns a client of the registry: through the host cluster, or at its own Service
// as its administrator. It trusts the given CAs, in PEM.
func (a Access) RegistryClient(ctx context.Context, authorities []byte) (*registryclient.Client, error) {
	if a.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		return registryclient.New(a.Host)
	}
	config, err := a.independent(ctx, authorities)
	if err != nil {
		return nil, err
	}
	return registryclient.New(config)
}

// independent leads to an independent registry, which is asked no faster than the host
// cluster is.
func (a Access) independent(ctx context.Context, authorities []byte) (*rest.Config, error) {
	secret, err := a.Secret(ctx, a.Name(contract.AdminSuffix))
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, fmt.Errorf("there is no Secret %s with the administrator's certificate", a.Name(contract.AdminSuffix))
	}
	return &rest.Config{Host: "https://" + a.ServerName(), Proxy: direct.Proxy, Dial: a.Dial, QPS: a.Host.QPS, Burst: a.Host.Burst, TLSClientConfig: rest.TLSClientConfig{
		CAData: authorities, CertData: secret.Data[corev1.TLSCertKey], KeyData: secret.Data[corev1.TLSPrivateKeyKey]}}, nil
}
