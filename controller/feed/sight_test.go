package feed

import (
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestSight expects callers to be told of the clusters that they may list, and where the registry
// hides clusters, of those in their ClusterSets.
func TestSight(t *testing.T) {
	of := func(set string) func(*v1beta1.Cluster) {
		return func(c *v1beta1.Cluster) { c.Spec.ClusterSet = set }
	}
	for reason, test := range map[string]struct {
		hides bool
		// permissions are what the caller has: "list clusters", or "get clustersets/clusters" with
		// a name or without.
		permissions []string
		want        string
	}{
		"nothing is hidden":           {false, []string{"list clusters"}, "batch none payments"},
		"may not list":                {false, []string{"get clustersets/clusters"}, "403"},
		"all, by the virtual right":   {true, []string{"list clusters", "get clustersets/clusters"}, "batch none payments"},
		"one set":                     {true, []string{"list clusters", "get clustersets/clusters payments"}, "payments"},
		"two sets":                    {true, []string{"list clusters", "get clustersets/clusters payments", "get clustersets/clusters batch"}, "batch payments"},
		"no set":                      {true, []string{"list clusters"}, ""},
		"a set that no cluster is in": {true, []string{"list clusters", "get clustersets/clusters gold"}, ""},
		"a set, but may not list":     {true, []string{"get clustersets/clusters payments"}, "403"},
	} {
		b := newBench(t, func(c *Config) { c.Hides = test.hides })
		b.put(member("payments", of("payments")), member("batch", of("batch")), member("none", of("")))
		b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			a := s.ResourceAttributes
			if s.User != "flux" || a.Group != "clusterregistry.k8s.io" || a.Namespace != "" || len(s.Extra) > 0 {
				t.Errorf("asked about %+v", s)
			}
			asked := strings.TrimSpace(a.Verb + " " + strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/") + " " + a.Name)
			for _, p := range test.permissions {
				if p == asked {
					return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
				}
			}
			return authorizationv1.SubjectAccessReviewStatus{}, nil
		}
		got := b.askTwice("token")
		if test.want == "403" {
			if got.Code != http.StatusForbidden || strings.Contains(got.Body.String(), "payments") {
				t.Errorf("%s: %d, %s", reason, got.Code, got.Body)
			}
			continue
		}
		if names := b.names(got); names != test.want {
			t.Errorf("%s: %q, want %q", reason, names, test.want)
		}
	}
}

// TestCallersApart expects what is kept for one caller not to be given to another.
func TestCallersApart(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Hides = true })
	b.put(member("payments"), member("batch", func(c *v1beta1.Cluster) { c.Spec.ClusterSet = "batch" }))
	narrow := user("payments", audience)
	narrow.User.Extra["scopes"] = authenticationv1.ExtraValue{"none"}
	b.tokens = map[string]authenticationv1.TokenReviewStatus{"1": user("payments", audience), "2": user("batch", audience), "3": user("payments", audience), "4": narrow}
	b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: len(s.Extra) == 0 && (s.ResourceAttributes.Resource == "clusters" || s.ResourceAttributes.Name == s.User)}, nil
	}
	for range 2 {
		for token, want := range map[string]string{"1": "payments", "2": "batch", "3": "payments"} {
			if got := b.names(b.askTwice(token)); got != want {
				t.Errorf("token %s: %q, want %q", token, got, want)
			}
		}
		if got := b.askAs("4", "/v1/clusters.json"); got.Code != http.StatusForbidden {
			t.Errorf("a token with fewer rights: %d", got.Code)
		}
	}
}
