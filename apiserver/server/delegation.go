package server

import (
	"fmt"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/apiserver/authn"
)

// openPaths are what the server tells callers whom no one vouches for.
var openPaths = append([]string{"/version", "/version/"}, authn.HealthPaths...)

// delegateAuthentication has the host say who a caller is. The options' own way
// to do so lets every caller in as anonymous, whatever they say of it, and then
// each path that a stranger tries costs the host a review of what they may; and it
// follows the host's ConfigMap into whatever that says of the front proxy.
func delegateAuthentication(options *genericoptions.DelegatingAuthenticationOptions, config *genericserver.RecommendedConfig, trusted trust) error {
	host, err := reviewer(options, config.ClientConfig)
	if err != nil {
		return err
	}
	info := &config.Authentication
	delegation := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                anonymousReach(openPaths),
		TokenAccessReviewClient:  host.AuthenticationV1(),
		TokenAccessReviewTimeout: options.TokenRequestTimeout,
		WebhookRetryBackoff:      options.WebhookRetryBackoff,
		CacheTTL:                 options.CacheTTL,
	}
	if delegation.ClientCertificateCAContentProvider, err = clientAuthority(options, host); err != nil {
		return err
	}
	if options.RequestHeader.ClientCAFile != "" {
		delegation.RequestHeaderConfig, err = options.RequestHeader.ToAuthenticationRequestHeaderConfig()
	} else {
		delegation.RequestHeaderConfig, err = followFrontProxy(host, options, trusted)
	}
	if err != nil {
		return err
	}
	info.RequestHeaderConfig = delegation.RequestHeaderConfig
	for _, authority := range []dynamiccertificates.CAContentProvider{delegation.ClientCertificateCAContentProvider, info.RequestHeaderConfig.CAContentProvider} {
		if authority == nil {
			continue
		}
		if err := info.ApplyClientCert(authority, config.SecureServing); err != nil {
			return err
		}
	}
	ordinary, definitions, err := delegation.New()
	if err != nil {
		return err
	}
	// Nothing is known of a front proxy that only a flag names, but that it says who asks.
	ofHost := options.RequestHeader.ClientCAFile == ""
	info.Authenticator, config.OpenAPIConfig.SecurityDefinitions = rememberProxy(info.RequestHeaderConfig, ordinary, ofHost), definitions
	return nil
}

// anonymousReach lets callers whom no one vouches for read these paths.
func anonymousReach(paths []string) *apiserver.AnonymousAuthConfig {
	config := &apiserver.AnonymousAuthConfig{Enabled: true}
	for _, path := range paths {
		config.Conditions = append(config.Conditions, apiserver.AnonymousAuthCondition{Path: path})
	}
	return config
}

// clientAuthority returns the CA of the host's ordinary users, nil if there is none.
func clientAuthority(options *genericoptions.DelegatingAuthenticationOptions, host kubernetes.Interface) (dynamiccertificates.CAContentProvider, error) {
	if options.ClientCert.ClientCA != "" {
		return options.ClientCert.GetClientCAContentProvider()
	}
	if options.SkipInClusterLookup {
		return nil, nil
	}
	return dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", trustNamespace, trustName, clientCAKey, host)
}

// reviewer returns the client that asks the host about tokens. Every request with
// a token that is not known yet waits for it.
func reviewer(options *genericoptions.DelegatingAuthenticationOptions, otherwise *rest.Config) (kubernetes.Interface, error) {
	config := rest.CopyConfig(otherwise)
	if options.RemoteKubeConfigFile != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", options.RemoteKubeConfigFile); err != nil {
			return nil, fmt.Errorf("--authentication-kubeconfig: %w", err)
		}
	}
	config.QPS, config.Burst = 200, 400
	config.Wrap(askPatiently)
	return kubernetes.NewForConfig(config)
}
