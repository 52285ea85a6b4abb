// Package authn tells, in independent mode, who a caller is: by a client
// certificate or by a token of a configured issuer. Anonymous callers reach the
// health checks and nothing else.
package authn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// HealthPaths are served to anyone, since kubelets and load balancers have no
// credentials.
var HealthPaths = []string{"/healthz", "/livez", "/readyz"}

// New returns the authenticator of requests. Either way to be known may be nil.
func New(clientCA dynamiccertificates.CAContentProvider, tokens authenticator.Token) authenticator.Request {
	var known []authenticator.Request
	if clientCA != nil {
		known = append(known, newByCertificate(clientCA.VerifyOptions))
	}
	if tokens != nil {
		known = append(known, bearertoken.New(outsider{tokens}))
	}
	var health []apiserver.AnonymousAuthCondition
	for _, path := range HealthPaths {
		health = append(health, apiserver.AnonymousAuthCondition{Path: path})
	}
	return union.NewFailOnError(group.NewAuthenticatedGroupAdder(union.New(known...)), anonymous.NewAuthenticator(health))
}

// reserved begin the names that only a certificate of the registry's own CA may
// give: those that Kubernetes keeps for its parts, and the registry's own, such as
// the group that may do everything.
var reserved = []string{"system:", "clusterregistry:"}

// reservation returns the reserved beginning of a name, or "".
func reservation(name string) string {
	if i := slices.IndexFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) }); i >= 0 {
		return reserved[i]
	}
	return ""
}

// outsider refuses identities that no issuer of tokens may give: an issuer is
// another system, and whoever administers it must not become a part of this one,
// nor its administrator.
type outsider struct{ authenticator.Token }

func (o outsider) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	response, ok, err := o.Token.AuthenticateToken(ctx, token)
	if err != nil || !ok {
		return nil, false, err
	}
	for _, name := range append([]string{response.User.GetName()}, response.User.GetGroups()...) {
		if prefix := reservation(name); prefix != "" {
			return nil, false, fmt.Errorf("the token's issuer claims %q for user %q: names and groups that begin with %q are refused from tokens; map the claim with another prefix", name, response.User.GetName(), prefix)
		}
	}
	return response, true, nil
}
