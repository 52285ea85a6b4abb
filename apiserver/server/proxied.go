package server

import (
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"

	"github.com/clusterregistry/operator/apiserver/authn"
)

// proxied authenticates what comes through the host's front proxy, whose certificate is
// remembered.
type proxied struct {
	verified *authn.Verified
	// names are the common names that the front proxy may have.
	names headerrequest.StringSliceProvider
	// headers reads who the caller is.
	headers authenticator.Request
	// ordinary decides on everything else.
	ordinary authenticator.Request
	// authorizes says that the front proxy is the host's aggregator, so that its callers are
	// [forwarded].
	authorizes bool
}

// rememberProxy returns an authenticator that decides as the ordinary one does, and verifies
// the front proxy's certificate once for each of its connections. A front proxy that
// authorizes is the host's aggregator.
func rememberProxy(config *authenticatorfactory.RequestHeaderConfig, ordinary authenticator.Request, authorizes bool) authenticator.Request {
	return proxied{
		authorizes: authorizes,
		verified:   authn.NewVerified(config.CAContentProvider.VerifyOptions),
		names:      config.AllowedClientNames,
		headers:    group.NewAuthenticatedGroupAdder(headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)),
		ordinary:   ordinary,
	}
}

// AuthenticateRequest says who a caller is. A request that names no one is not the front
// proxy's, but that of someone who holds its certificate.
func (p proxied) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if chains := p.verified.Chains(req); len(chains) > 0 && slices.Contains(p.names.Value(), req.TLS.PeerCertificates[0].Subject.CommonName) {
		if response, ok, err := p.headers.AuthenticateRequest(req); ok && err == nil {
			if p.authorizes {
				response.User = forwarded{response.User}
			}
			return response, true, nil
		}
	}
	return p.ordinary.AuthenticateRequest(req)
}
