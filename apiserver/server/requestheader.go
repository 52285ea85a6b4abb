package server

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// trust is by what a server in aggregated mode tells its callers apart.
type trust struct {
	// allowedNames are the common names that the front proxy may have.
	allowedNames []string
	// frontProxyCA and clientCA are bundles in PEM.
	frontProxyCA, clientCA string
	// The headers that the front proxy tells users in.
	userHeaders, uidHeaders, groupHeaders, extraPrefixes []string
}

// Where a host tells what it trusts itself.
const (
	trustNamespace       = metav1.NamespaceSystem
	trustName            = "extension-apiserver-authentication"
	authenticationConfig = "ConfigMap " + trustNamespace + "/" + trustName
	clientCAKey          = "client-ca-file"
)

// readTrust returns what the server is going to trust.
func readTrust(ctx context.Context, options *genericoptions.DelegatingAuthenticationOptions, client kubernetes.Interface) (trust, error) {
	if options.SkipInClusterLookup {
		return trustOf(&corev1.ConfigMap{}, options)
	}
	config, err := client.CoreV1().ConfigMaps(trustNamespace).Get(ctx, trustName, metav1.GetOptions{})
	if err != nil {
		return trust{}, fmt.Errorf("read %s: %w; bind the server's ServiceAccount to the Role extension-apiserver-authentication-reader in kube-system", authenticationConfig, err)
	}
	return trustOf(config, options)
}

// trustOf returns what the server is to trust: what flags say, else what the host
// says.
func trustOf(config *corev1.ConfigMap, options *genericoptions.DelegatingAuthenticationOptions) (trust, error) {
	t := trust{frontProxyCA: config.Data["requestheader-client-ca-file"], clientCA: config.Data[clientCAKey]}
	for key, list := range map[string]*[]string{
		"requestheader-allowed-names": &t.allowedNames, "requestheader-username-headers": &t.userHeaders, "requestheader-uid-headers": &t.uidHeaders,
		"requestheader-group-headers": &t.groupHeaders, "requestheader-extra-headers-prefix": &t.extraPrefixes,
	} {
		if content := config.Data[key]; content != "" {
			if err := json.Unmarshal([]byte(content), list); err != nil {
				return t, fmt.Errorf("%s: %s: %w", authenticationConfig, key, err)
			}
		}
	}
	if path := options.RequestHeader.ClientCAFile; path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			return t, fmt.Errorf("--requestheader-client-ca-file: %w", err)
		}
		t.frontProxyCA, t.allowedNames, t.userHeaders = string(content), options.RequestHeader.AllowedNames, options.RequestHeader.UsernameHeaders
	}
	if path := options.ClientCert.ClientCA; path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			return t, fmt.Errorf("--client-ca-file: %w", err)
		}
		t.clientCA = string(content)
	}
	return t, nil
}

// check refuses a front proxy that can be impersonated: who holds any
// certificate of the requestheader CA may claim to be anyone, unless the names
// are restricted; and when that CA also signs ordinary client certificates,
// every one of its users holds such a certificate.
func (t trust) check() error {
	if t.frontProxyCA == "" {
		return fmt.Errorf("there is no requestheader CA to verify the host cluster's front proxy with, neither in %s nor from --requestheader-client-ca-file; start the host cluster's kube-apiserver with its --requestheader flags, as its aggregator needs them", authenticationConfig)
	}
	if len(t.allowedNames) == 0 {
		return fmt.Errorf("requestheader-allowed-names is empty, so that any certificate of the requestheader CA could claim any user; start the host cluster's kube-apiserver, and this server if it is told by flags, with --requestheader-allowed-names=NAME, the common name of the host cluster's --proxy-client-cert-file")
	}
	if len(t.userHeaders) == 0 {
		return fmt.Errorf("requestheader-username-headers is empty, so that the front proxy could not name the user, and every request would be rejected; start the host cluster's kube-apiserver with --requestheader-username-headers=X-Remote-User")
	}
	shared, err := sharedAuthority(t.frontProxyCA, t.clientCA)
	if err != nil {
		return err
	}
	if shared {
		return fmt.Errorf("requestheader-client-ca-file and client-ca-file share a CA, so that an ordinary client certificate could pass for the front proxy's; give the host cluster's kube-apiserver a --requestheader-client-ca-file of its own")
	}
	return nil
}

// sharedAuthority reports whether a certificate is in both bundles.
func sharedAuthority(a, b string) (bool, error) {
	first, err := authorities(a)
	if err != nil {
		return false, fmt.Errorf("requestheader-client-ca-file: %w", err)
	}
	second, err := authorities(b)
	if err != nil {
		return false, fmt.Errorf("client-ca-file: %w", err)
	}
	for _, x := range first {
		for _, y := range second {
			// A renewed CA may be another certificate for the same key.
			if bytes.Equal(x.RawSubjectPublicKeyInfo, y.RawSubjectPublicKeyInfo) {
				return true, nil
			}
		}
	}
	return false, nil
}

func authorities(bundle string) ([]*x509.Certificate, error) {
	if bundle == "" {
		return nil, nil
	}
	certs, err := cert.ParseCertsPEM([]byte(bundle))
	return certs, err
}
