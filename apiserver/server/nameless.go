package server

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
)

// forwarded is a caller whose request came through the host's front proxy, on a connection
// whose certificate is remembered: the host has authorized it, its name included, before it
// forwarded it. Impersonation puts another user in its place, whom the host knows nothing of.
type forwarded struct{ user.Info }

// objectVerbs are those of requests for one object, which select nothing.
var objectVerbs = sets.New("get", "update", "patch", "delete")

// reviewOnce makes the server ask the host once about requests for single objects that the
// host forwards to it, rather than about each name. Everything else that asks what a caller
// may do, such as admission or storage, asks the authorizer itself.
func reviewOnce(config *genericserver.Config) { authorizeRequests(config, namelessFirst) }

// authorizeRequests changes what decides on requests, and on nothing else. What was changed
// first decides first.
func authorizeRequests(config *genericserver.Config, change func(authorizer.Authorizer) authorizer.Authorizer) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericserver.Config) http.Handler {
		own := *c
		own.Authorization.Authorizer = change(c.Authorization.Authorizer)
		return build(handler, &own)
	}
}

// namelessFirst returns an authorizer that lets a forwarded request for one object pass if
// its caller may do the same to objects of every name, which the other authorizer is asked
// first. What is not allowed by that is asked exactly: a role may be for certain names.
//
// The host's own decision remains exact. So what it denies for a name, though its roles
// allow all names, as a webhook can, does not arrive here.
func namelessFirst(exact authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
		if info, ok := request.RequestInfoFrom(ctx); ok && info.Name != "" && objectVerbs.Has(info.Verb) && isForwarded(attributes, info) {
			decision, reason, err := exact.Authorize(ctx, authorizer.AttributesRecord{
				User: attributes.GetUser(), Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
				Resource: info.Resource, Subresource: info.Subresource, ResourceRequest: true, Path: info.Path,
			})
			if err != nil { // a host that does not answer is not asked twice
				return authorizer.DecisionNoOpinion, "", err
			}
			if decision == authorizer.DecisionAllow {
				return decision, reason, nil
			}
		}
		return exact.Authorize(ctx, attributes)
	})
}

// isForwarded reports whether attributes are those of a request for a resource, and not of
// something else that is asked for it, and whether the host forwarded it.
func isForwarded(a authorizer.Attributes, info *request.RequestInfo) bool {
	if _, ok := a.GetUser().(forwarded); !ok || !info.IsResourceRequest {
		return false
	}
	return a.IsResourceRequest() && a.GetVerb() == info.Verb && a.GetName() == info.Name && a.GetNamespace() == info.Namespace &&
		a.GetAPIGroup() == info.APIGroup && a.GetAPIVersion() == info.APIVersion && a.GetResource() == info.Resource && a.GetSubresource() == info.Subresource
}
