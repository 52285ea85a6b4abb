package authn

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestOutsider makes sure that no issuer of tokens can make a part of the system
// or of the registry, whatever it claims.
func TestOutsider(t *testing.T) {
	for _, test := range []struct {
		reason string
		claims user.DefaultInfo
		want   string // in the refusal; "" means that the claims count
	}{
		{"a person", user.DefaultInfo{Name: "ada", Groups: []string{"dev"}}, ""},
		{"names that only look alike", user.DefaultInfo{Name: "system", Groups: []string{"clusterregistry", "idp:clusterregistry:admins", "ClusterRegistry:admins"}}, ""},
		{"a part of Kubernetes", user.DefaultInfo{Name: "system:apiserver"}, `begin with "system:"`},
		{"the group that Kubernetes obeys", user.DefaultInfo{Name: "eve", Groups: []string{"dev", "system:masters"}}, `claims "system:masters"`},
		{"the registry's administrators", user.DefaultInfo{Name: "eve", Groups: []string{"dev", "clusterregistry:admins"}}, `claims "clusterregistry:admins" for user "eve"`},
		{"a name of the registry's own", user.DefaultInfo{Name: "clusterregistry:operator"}, `begin with "clusterregistry:"`},
	} {
		tokens := authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &test.claims}, true, nil
		})
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis", nil)
		request.Header.Set("Authorization", "Bearer token")
		response, ok, err := New(nil, tokens).AuthenticateRequest(request)
		switch {
		case test.want == "" && (err != nil || !ok || response.User.GetName() != test.claims.Name):
			t.Errorf("%s: %+v, %t, %v", test.reason, response, ok, err)
		case test.want != "" && (err == nil || ok || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %+v, %t, %v, want an error with %q", test.reason, response, ok, err, test.want)
		}
	}
}
