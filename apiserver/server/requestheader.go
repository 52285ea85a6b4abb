package server

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// checkFrontProxy refuses a host whose front proxy can be impersonated: who
// holds any certificate of the requestheader CA may claim to be anybody, unless
// the names are restricted; and when that CA also signs ordinary client
// certificates, every one of its users holds such a certificate.
func checkFrontProxy(ctx context.Context, client kubernetes.Interface) error {
	const source = "ConfigMap kube-system/extension-apiserver-authentication"
	config, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read %s: %w; bind the server's ServiceAccount to the Role extension-apiserver-authentication-reader in kube-system", source, err)
	}
	var names []string
	if err := json.Unmarshal([]byte(config.Data["requestheader-allowed-names"]), &names); err != nil {
		return fmt.Errorf("%s: requestheader-allowed-names: %w", source, err)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: requestheader-allowed-names is empty, so that any certificate of the requestheader CA could claim any user; start the host's kube-apiserver with --requestheader-allowed-names=NAME, the common name of its --proxy-client-cert-file", source)
	}
	shared, err := sharedAuthority(config.Data["requestheader-client-ca-file"], config.Data["client-ca-file"])
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	if shared {
		return fmt.Errorf("%s: requestheader-client-ca-file and client-ca-file share a CA, so that an ordinary client certificate could pass for the front proxy's; give the host's kube-apiserver a --requestheader-client-ca-file of its own", source)
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
