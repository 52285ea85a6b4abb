package diagnose

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/status"
)

// endpointTimeout bounds one request to an endpoint.
const endpointTimeout = 10 * time.Second

// endpoint finds whether an independent registry is reached from here: with the CA that
// the operator has published, and without credentials. The address was written by the
// operator.
func (d *diagnosis) endpoint(ctx context.Context, creg *operatorv1alpha1.ClusterRegistry) {
	endpoint := creg.Status.Endpoint
	if creg.Spec.Mode != operatorv1alpha1.ModeIndependent || endpoint == nil || endpoint.URL == "" {
		return
	}
	problem := ask(ctx, endpoint)
	if problem == "" {
		return
	}
	next := "kubectl -n " + creg.Namespace + " describe service " + creg.Name + "-server; kubectl -n " + creg.Namespace + " describe creg " + creg.Name
	d.add(status.Error, registryName(creg), next, "from this computer, %s is not reached: %s", endpoint.URL, problem)
}

// ask returns why an endpoint does not answer over TLS that its CA has signed, "" when it
// does. Whatever it answers will do, but for an error of a server that is not ready.
func ask(ctx context.Context, endpoint *operatorv1alpha1.Endpoint) string {
	var roots *x509.CertPool // those of this computer
	if len(endpoint.CABundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(endpoint.CABundle) {
			return "status.endpoint.caBundle has no certificate in PEM"
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: endpointTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(endpoint.URL, "/")+"/readyz", nil)
	if err != nil {
		return "it is not a valid URL"
	}
	response, err := client.Do(request)
	if err != nil {
		return unreached(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Sprintf("it answers %s to /readyz", response.Status)
	}
	return ""
}

// unreached says why a request got no answer, and what that means.
func unreached(err error) string {
	var name *net.DNSError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var timeout net.Error
	text := command.Plain(err.Error())
	switch {
	case errors.As(err, &name):
		return "its name is not in DNS here: " + text
	case errors.As(err, &authority):
		return "its certificate is not signed by the CA in status.endpoint.caBundle: another server may answer there, or something in between: " + text
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet; check this computer's clock, too: " + text
	case errors.As(err, &host):
		return "its certificate is for other names: " + text
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %s: a firewall may be in the way, or the address is for clients elsewhere: %s", endpointTimeout, text)
	}
	return text
}

// served finds whether clusters can be listed through the host cluster, where it has an
// aggregated registry.
func (d *diagnosis) served(ctx context.Context, registries []operatorv1alpha1.ClusterRegistry) {
	// One that was never installed is not expected to answer; one that could not be read
	// may be.
	if !slices.ContainsFunc(registries, func(creg operatorv1alpha1.ClusterRegistry) bool {
		return !known(&creg) || creg.Spec.Mode == operatorv1alpha1.ModeAggregated && creg.Status.Version != ""
	}) {
		return
	}
	registry, err := d.env.Registry()
	if err == nil {
		_, err = registry.ClusterregistryV1beta1().Clusters().List(ctx, metav1.ListOptions{Limit: 1})
	}
	switch {
	case err == nil:
	case absent(err):
		d.add(Unchecked, "clusters", "kubectl get clusters.v1alpha1.clusterregistry.k8s.io", "not checked: whether clients are served: this plugin asks for clusterregistry.k8s.io/v1beta1, which every registry serves")
	case apierrors.IsForbidden(err):
		d.unchecked("whether clients are served", v1beta1.SchemeGroupVersion.WithResource("clusters"), "", err)
	default:
		d.add(status.Critical, "clusters", "kubectl get apiservices v1beta1.clusterregistry.k8s.io", "they can't be listed through the host cluster: %v", err)
	}
}
