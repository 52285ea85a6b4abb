package server

import (
	"context"
	"fmt"

	"github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/clusterregistry/operator/apiserver/authn"
	"github.com/clusterregistry/operator/apiserver/storage/reviews"
)

// independent lets the registry itself decide who asks and what they may. There
// is no host and nothing of a host: no admission from outside, no aggregator.
func (o *Options) independent(ctx context.Context, c *Config) error {
	config := &c.generic.Config
	// A host's collector ends what is deleted in foreground or with its dependents
	// orphaned. Here nothing would ever do so.
	c.collection = rest.Unsupported
	// It reads its rules from a host; queues by user take its place.
	o.Recommended.Features.EnablePriorityAndFairness = false
	if err := o.Recommended.Features.ApplyTo(config, nil, nil); err != nil {
		return err
	}
	queueFairly(config)
	issuers, err := o.authentication(ctx, config)
	if err != nil {
		return err
	}
	rules, extendAuthorization, err := o.authorization(config)
	if err != nil {
		return err
	}
	c.extend = func(server *genericserver.GenericAPIServer) error {
		if issuers != nil {
			if err := server.AddPostStartHook("authentication-configuration", func(hook genericserver.PostStartHookContext) error {
				go issuers.Run(hook.Context)
				return nil
			}); err != nil {
				return err
			}
		}
		if err := serveLists(server); err != nil {
			return err
		}
		if err := serveVersion(server, reviews.Authentication(config.Authentication.Authenticator), authenticationv1.SchemeGroupVersion); err != nil {
			return err
		}
		if err := serveVersion(server, reviews.Authorization(server.Authorizer, rules), authorizationv1.SchemeGroupVersion); err != nil {
			return err
		}
		return extendAuthorization(server)
	}
	return nil
}

// serveLists adds the core API group without a single resource. kubectl reads
// and writes several objects as a List of that group, and takes it only from a
// server that has the group; behind an aggregator, the host has it.
func serveLists(server *genericserver.GenericAPIServer) error {
	core := schema.GroupVersion{Version: "v1"}
	group := genericserver.NewDefaultAPIGroupInfo(core.Group, scheme, metav1.ParameterCodec, codecs)
	if err := server.InstallLegacyAPIGroup(genericserver.DefaultLegacyAPIPrefix, &group); err != nil {
		return err
	}
	// It leaves out a version that has no resources.
	service := new(restful.WebService).Path(genericserver.DefaultLegacyAPIPrefix + "/" + core.Version)
	nothing := discovery.APIResourceListerFunc(func() []metav1.APIResource { return []metav1.APIResource{} })
	discovery.NewAPIVersionHandler(codecs, core, nothing).AddToWebService(service)
	server.Handler.GoRestfulContainer.Add(service)
	server.AggregatedLegacyDiscoveryGroupManager.AddGroupVersion(core.Group, apidiscoveryv2.APIVersionDiscovery{Version: core.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
	return nil
}

// authentication returns the issuers of tokens; nil means there are none.
func (o *Options) authentication(ctx context.Context, config *genericserver.Config) (*authn.Issuers, error) {
	var clientCA dynamiccertificates.CAContentProvider
	if o.Recommended.Authentication.ClientCert.ClientCA != "" {
		var err error
		if clientCA, err = o.Recommended.Authentication.ClientCert.GetClientCAContentProvider(); err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		if err := config.Authentication.ApplyClientCert(clientCA, config.SecureServing); err != nil {
			return nil, err
		}
	}
	var issuers *authn.Issuers
	var tokens authenticator.Token
	if o.AuthenticationConfig != "" {
		var err error
		// A server that was told to stop still answers for a while, so that its
		// issuers must outlive that order.
		if issuers, err = authn.NewIssuers(context.WithoutCancel(ctx), o.AuthenticationConfig, config.APIServerID); err != nil {
			return nil, fmt.Errorf("--authentication-config: %w", err)
		}
		tokens = issuers
	}
	config.Authentication.Authenticator = authn.New(clientCA, tokens)
	return issuers, nil
}
