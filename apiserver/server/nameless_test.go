package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
)

// TestNamelessFirst compares what a host is asked, and what becomes of its answers.
func TestNamelessFirst(t *testing.T) {
	const all, one = "", "east"
	ann := &user.DefaultInfo{Name: "ann", Groups: []string{"fleet"}}
	outage := errors.New("the host does not answer")
	get := authorizer.AttributesRecord{User: forwarded{ann}, Verb: "get", APIGroup: "clusterregistry.k8s.io", APIVersion: "v1beta1", Resource: "clusters", Subresource: "status", Name: one, ResourceRequest: true}
	change := func(of func(*authorizer.AttributesRecord)) authorizer.AttributesRecord {
		out := get
		of(&out)
		return out
	}
	for name, test := range map[string]struct {
		asks authorizer.AttributesRecord
		// own is the request that asks, if it does not ask for itself.
		own  *authorizer.AttributesRecord
		says map[string]review
		want authorizer.Decision
		err  error
		// asked are the names that the host was asked about.
		asked []string
	}{
		"all names are allowed":     {asks: get, says: map[string]review{all: {decision: authorizer.DecisionAllow}}, want: authorizer.DecisionAllow, asked: []string{all}},
		"one name is allowed":       {asks: get, says: map[string]review{all: {decision: authorizer.DecisionNoOpinion}, one: {decision: authorizer.DecisionAllow}}, want: authorizer.DecisionAllow, asked: []string{all, one}},
		"no name is denied":         {asks: get, says: map[string]review{all: {decision: authorizer.DecisionDeny}, one: {decision: authorizer.DecisionAllow}}, want: authorizer.DecisionAllow, asked: []string{all, one}},
		"nothing is allowed":        {asks: get, says: map[string]review{all: {decision: authorizer.DecisionNoOpinion}, one: {decision: authorizer.DecisionNoOpinion}}, want: authorizer.DecisionNoOpinion, asked: []string{all, one}},
		"the host does not answer":  {asks: get, says: map[string]review{all: {decision: authorizer.DecisionAllow, err: outage}}, want: authorizer.DecisionNoOpinion, err: outage, asked: []string{all}},
		"a caller of its own":       {asks: change(func(a *authorizer.AttributesRecord) { a.User = ann }), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"a list of one":             {asks: change(func(a *authorizer.AttributesRecord) { a.Verb = "list" }), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"no name":                   {asks: change(func(a *authorizer.AttributesRecord) { a.Verb, a.Name = "create", "" }), says: map[string]review{all: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{all}},
		"a path":                    {asks: authorizer.AttributesRecord{User: forwarded{ann}, Verb: "get", Path: "/metrics"}, says: map[string]review{all: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{all}},
		"impersonation":             {asks: authorizer.AttributesRecord{User: forwarded{ann}, Verb: "impersonate", Resource: "users", Name: one, ResourceRequest: true}, own: &get, says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"creation on update":        {asks: change(func(a *authorizer.AttributesRecord) { a.Verb = "create" }), own: new(change(func(a *authorizer.AttributesRecord) { a.Verb = "update" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"a permission of a field's": {asks: change(func(a *authorizer.AttributesRecord) { a.Subresource = "endpoints" }), own: &get, says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"another name":              {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.Name = "west" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"another resource":          {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.Resource = "clustersets" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"another group":             {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.APIGroup = "example.com" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"another version":           {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.APIVersion = "v1" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"another namespace":         {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.Namespace = "team" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"another verb":              {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.Verb = "delete" })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"a request for no object":   {asks: get, own: new(change(func(a *authorizer.AttributesRecord) { a.ResourceRequest = false })), says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
		"a path for an object":      {asks: change(func(a *authorizer.AttributesRecord) { a.ResourceRequest = false }), own: &get, says: map[string]review{one: {decision: authorizer.DecisionDeny}}, want: authorizer.DecisionDeny, asked: []string{one}},
	} {
		t.Run(name, func(t *testing.T) {
			own := test.own
			if own == nil {
				own = &test.asks
			}
			ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{
				IsResourceRequest: own.ResourceRequest, Path: own.Path, Verb: own.Verb, APIGroup: own.APIGroup, APIVersion: own.APIVersion, Resource: own.Resource, Subresource: own.Subresource, Namespace: own.Namespace, Name: own.Name,
			})
			var asked []string
			decision, _, err := namelessFirst(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetUser().GetName() != "ann" || a.GetVerb() != test.asks.Verb || a.GetResource() != test.asks.Resource || a.GetSubresource() != test.asks.Subresource || a.GetAPIGroup() != test.asks.APIGroup || a.GetAPIVersion() != test.asks.APIVersion || a.GetPath() != test.asks.Path {
					t.Errorf("it was asked for something else: %+v", a)
				}
				asked = append(asked, a.GetName())
				said := test.says[a.GetName()]
				return said.decision, "", said.err
			})).Authorize(ctx, test.asks)
			if decision != test.want || !errors.Is(err, test.err) || !slices.Equal(asked, test.asked) {
				t.Errorf("got %s, %v, and the host was asked about %q; want %s, %v and %q", decision, err, asked, test.want, test.err, test.asked)
			}
		})
	}
}

// TestReviewOnce has what handles requests alone ask without a name.
func TestReviewOnce(t *testing.T) {
	exact := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetName() == "" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "", nil
	})
	attributes := authorizer.AttributesRecord{User: forwarded{&user.DefaultInfo{Name: "ann"}}, Verb: "get", Resource: "clusters", Name: "east", ResourceRequest: true}
	ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "clusters", Name: "east"})
	says := func(c *genericserver.Config) authorizer.Decision {
		decision, _, err := c.Authorization.Authorizer.Authorize(ctx, attributes)
		if err != nil {
			t.Error(err)
		}
		return decision
	}
	config := &genericserver.Config{BuildHandlerChainFunc: func(handler http.Handler, c *genericserver.Config) http.Handler {
		if decision := says(c); decision != authorizer.DecisionAllow {
			t.Errorf("the handlers decide %s", decision)
		}
		return handler
	}}
	config.Authorization.Authorizer = exact
	reviewOnce(config)
	config.BuildHandlerChainFunc(nil, config)
	if decision := says(config); decision != authorizer.DecisionDeny {
		t.Errorf("everything else decides %s", decision)
	}
}
