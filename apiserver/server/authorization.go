package server

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilwebhook "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apiserver/authn"
	"github.com/clusterregistry/operator/apiserver/authz"
	"github.com/clusterregistry/operator/apiserver/storage/rbac"
)

// authorization sets what decides on requests, and returns what lists a
// caller's rules and what the server serves for it.
func (o *Options) authorization(config *genericserver.Config) (authorizer.RuleResolver, func(*genericserver.GenericAPIServer) error, error) {
	if o.AuthorizationWebhook != "" {
		remote, err := o.webhook()
		if err != nil {
			return nil, nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
		}
		return remote, func(*genericserver.GenericAPIServer) error { return nil }, allow(config, "Webhook", remote)
	}
	storage, err := rbac.New(scheme, config.RESTOptionsGetter)
	if err != nil {
		return nil, nil, err
	}
	informers := authz.NewInformers(storage.Roles, storage.Bindings)
	own := informers.RBAC()
	return own, func(server *genericserver.GenericAPIServer) error {
		// The server is not ready before it knows who may do what.
		if err := server.AddPostStartHook("rbac", func(hook genericserver.PostStartHookContext) error {
			if err := wait.PollUntilContextCancel(hook.Context, reconcileInterval, true, func(ctx context.Context) (bool, error) {
				err := authz.Reconcile(ctx, storage.Roles, storage.Bindings)
				if err != nil {
					klog.ErrorS(err, "The bootstrap roles can't be written yet")
				}
				return err == nil, nil
			}); err != nil {
				return err
			}
			return informers.Run(hook.Context)
		}); err != nil {
			return err
		}
		return serve(server, rbacv1.SchemeGroupVersion, storage.Guarded(own))
	}, allow(config, "RBAC", own)
}

// allow lets requests pass that the authorizer allows, and the health checks.
func allow(config *genericserver.Config, name string, decides authorizer.Authorizer) error {
	health, err := path.NewAuthorizer(authn.HealthPaths)
	if err != nil {
		return err
	}
	config.Authorization.Authorizer, err = union.New(union.NamedAuthorizer{AuthorizerName: "Health", Authorizer: health}, union.NamedAuthorizer{AuthorizerName: name, Authorizer: decides})
	return err
}

// webhook returns an authorizer that asks another server.
func (o *Options) webhook() (*webhook.WebhookAuthorizer, error) {
	kubeconfig, err := utilwebhook.LoadKubeconfig(o.AuthorizationWebhook, nil)
	if err != nil {
		return nil, err
	}
	cache := o.Recommended.Authorization
	return webhook.New(kubeconfig, "v1", cache.AllowCacheTTL, cache.DenyCacheTTL, *genericoptions.DefaultAuthWebhookRetryBackoff(),
		authorizer.DecisionNoOpinion, nil, "registry", authorizerfactory.NewDelegatingAuthorizerMetrics(), authorizationcel.NewDefaultCompiler())
}
