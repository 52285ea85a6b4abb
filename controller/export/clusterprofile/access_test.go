package clusterprofile

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// TestOnlyAllowedProvidersArePublished expects that a writer of entries chooses among the
// providers of the namespace alone.
func TestOnlyAllowedProvidersArePublished(t *testing.T) {
	for _, test := range []struct {
		reason  string
		allowed []string
		kinds   []string
		want    []string
		why     string
		says    string
	}{
		{"none by default", nil, []string{"secretreader"}, nil, "ProviderNotAllowed", `"secretreader"`},
		{"another", []string{"gke"}, []string{"secretreader"}, nil, "ProviderNotAllowed", "--exports-file"},
		{"one of two", []string{"gke"}, []string{"argo-cd-builtin-gcp", "gke"}, []string{"gke"}, "Published", `left out: "argo-cd-builtin-gcp"`},
		{"a client's own program", []string{"gke"}, []string{"argo-cd-builtin-gcp", "argo-cd-builtin---help"}, nil, "ProviderNotAllowed", `"argo-cd-builtin-gcp", "argo-cd-builtin---help"`},
	} {
		cluster := member("east", func(c *v1beta1.Cluster) {
			c.Spec.Access = nil
			for _, kind := range test.kinds {
				c.Spec.Access = append(c.Spec.Access, v1beta1.Access{Name: "of-" + kind, Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: kind}})
			}
		})
		p := source.of(cluster, format.Target{Namespace: "a", Providers: test.allowed}, verified)
		var got []string
		for _, a := range p.Status.AccessProviders {
			got = append(got, a.Name)
		}
		c := meta.FindStatusCondition(p.Status.Conditions, AccessPublished)
		if !slices.Equal(got, test.want) || c.Reason != test.why || !strings.Contains(c.Message, test.says) {
			t.Errorf("%s: published %q, %+v", test.reason, got, c)
		}
	}
}
