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
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// HealthPaths are served to anybody, since kubelets and load balancers have no
// credentials.
var HealthPaths = []string{"/healthz", "/livez", "/readyz"}

// New returns the authenticator of requests. Either way to be known may be nil.
func New(clientCA dynamiccertificates.CAContentProvider, tokens authenticator.Token) authenticator.Request {
	var known []authenticator.Request
	if clientCA != nil {
		known = append(known, x509.NewDynamic(clientCA.VerifyOptions, x509.CommonNameUserConversion))
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

// reserved begins the names that Kubernetes keeps for its own parts.
const reserved = "system:"

// outsider refuses identities that no issuer of tokens may give: an issuer is
// another system, and whoever administers it must not become a part of this one.
type outsider struct{ authenticator.Token }

func (o outsider) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	response, ok, err := o.Token.AuthenticateToken(ctx, token)
	if err != nil || !ok {
		return nil, false, err
	}
	names := append([]string{response.User.GetName()}, response.User.GetGroups()...)
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, reserved) }); i >= 0 {
		return nil, false, fmt.Errorf("the token's issuer claims %q for user %q: names and groups that begin with %q are refused from tokens; map the claim with another prefix", names[i], response.User.GetName(), reserved)
	}
	return response, true, nil
}
