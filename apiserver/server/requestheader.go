package server

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
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
}

// authenticationConfig is where a host tells what it trusts itself.
const authenticationConfig = "ConfigMap kube-system/extension-apiserver-authentication"

// readTrust returns what the server is going to trust: what flags say, else what
// the host says.
func readTrust(ctx context.Context, options *genericoptions.DelegatingAuthenticationOptions, client kubernetes.Interface) (trust, error) {
	var t trust
	if !options.SkipInClusterLookup {
		config, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil {
			return t, fmt.Errorf("read %s: %w; bind the server's ServiceAccount to the Role extension-apiserver-authentication-reader in kube-system", authenticationConfig, err)
		}
		t.frontProxyCA, t.clientCA = config.Data["requestheader-client-ca-file"], config.Data["client-ca-file"]
		if names := config.Data["requestheader-allowed-names"]; names != "" {
			if err := json.Unmarshal([]byte(names), &t.allowedNames); err != nil {
				return t, fmt.Errorf("%s: requestheader-allowed-names: %w", authenticationConfig, err)
			}
		}
	}
	if path := options.RequestHeader.ClientCAFile; path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			return t, fmt.Errorf("--requestheader-client-ca-file: %w", err)
		}
		t.frontProxyCA, t.allowedNames = string(content), options.RequestHeader.AllowedNames
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
// certificate of the requestheader CA may claim to be anybody, unless the names
// are restricted; and when that CA also signs ordinary client certificates,
// every one of its users holds such a certificate.
func (t trust) check() error {
	if t.frontProxyCA == "" {
		return fmt.Errorf("there is no requestheader CA to know the host's front proxy by, neither in %s nor from --requestheader-client-ca-file; start the host's kube-apiserver with its --requestheader flags, as its aggregator needs them", authenticationConfig)
	}
	if len(t.allowedNames) == 0 {
		return fmt.Errorf("requestheader-allowed-names is empty, so that any certificate of the requestheader CA could claim any user; start the host's kube-apiserver, and this server if it is told by flags, with --requestheader-allowed-names=NAME, the common name of the host's --proxy-client-cert-file")
	}
	shared, err := sharedAuthority(t.frontProxyCA, t.clientCA)
	if err != nil {
		return err
	}
	if shared {
		return fmt.Errorf("requestheader-client-ca-file and client-ca-file share a CA, so that an ordinary client certificate could pass for the front proxy's; give the host's kube-apiserver a --requestheader-client-ca-file of its own")
	}
	return nil
}

// awaitFrontProxy keeps the server from being ready before it has read the
// requestheader CA, which it does while it already serves. Until then the front
// proxy, and with it every user, would be taken for nobody and be refused.
func awaitFrontProxy(config *genericserver.Config) {
	frontProxy := config.Authentication.RequestHeaderConfig
	if frontProxy == nil {
		return
	}
	config.AddReadyzChecks(healthz.NamedCheck("front-proxy", func(*http.Request) error {
		if len(frontProxy.CAContentProvider.CurrentCABundleContent()) == 0 {
			return errors.New("the requestheader CA is not read yet from the host")
		}
		return nil
	}))
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
