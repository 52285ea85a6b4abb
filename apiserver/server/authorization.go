package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
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
		if err := followRoles(server, storage, informers); err != nil {
			return err
		}
		return serveVersion(server, storage.Guarded(own), rbacv1.SchemeGroupVersion)
	}, allow(config, "RBAC", own)
}

// followRoles makes the server bring back the bootstrap roles and read all roles
// once it runs. Until then it is not ready, though alive: without etcd, a
// restart would not help.
func followRoles(server *genericserver.GenericAPIServer, storage *rbac.Storage, informers *authz.Informers) error {
	known := make(chan struct{})
	if err := server.AddReadyzChecks(healthz.NamedCheck("roles", func(*http.Request) error {
		select {
		case <-known:
			return nil
		default:
			return errors.New("the roles have not been read from etcd yet")
		}
	})); err != nil {
		return err
	}
	follow := func(ctx context.Context) error {
		if err := wait.PollUntilContextCancel(ctx, reconcileInterval, true, func(ctx context.Context) (bool, error) {
			err := authz.Reconcile(ctx, storage.Roles, storage.Bindings)
			if err != nil {
				klog.ErrorS(err, "The bootstrap roles can't be written yet")
			}
			return err == nil, nil
		}); err != nil {
			return err
		}
		if err := informers.Run(ctx); err != nil {
			return err
		}
		close(known)
		return nil
	}
	return server.AddPostStartHook("roles", func(hook genericserver.PostStartHookContext) error {
		go func() {
			if err := follow(hook.Context); err != nil {
				klog.ErrorS(err, "The server stops before it has read the roles")
			}
		}()
		return nil
	})
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
