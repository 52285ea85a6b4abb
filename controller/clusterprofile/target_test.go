package clusterprofile

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/labelkeys"
)

func TestParseTargets(t *testing.T) {
	for _, test := range []struct {
		reason string
		texts  []string
		says   string
	}{
		{"namespaces", []string{"a", "b:tier=gold,env in (x, y)", "c:"}, ""},
		{"twice", []string{"a", "a:tier=gold"}, `namespace "a" is there twice`},
		{"no name", []string{":tier=gold"}, "name of a namespace"},
		{"another kind of name", []string{"A_B"}, "name of a namespace"},
		{"no selector", []string{"a:tier=="}, ""},
		{"another kind of selector", []string{"a:tier in gold"}, "label selector"},
	} {
		got, err := ParseTargets(test.texts, nil, nil)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if test.reason == "namespaces" && (len(got) != 3 || !got[0].Selector.Empty() || !got[2].Selector.Empty() || !got[1].Selector.Matches(labels.Set{"tier": "gold", "env": "y"}) || got[1].Selector.Matches(labels.Set{"tier": "gold"})) {
			t.Errorf("%+v", got)
		}
	}
}

func TestLabelsToCopy(t *testing.T) {
	got, err := ParseTargets([]string{"a", "b:tier=gold"}, []string{"b:tier,example.com/*"}, nil)
	if err != nil || got[0].Labels.Allows("tier") || !got[1].Labels.Allows("tier") || !got[1].Labels.Allows("example.com/x") || got[1].Labels.Allows("other") {
		t.Errorf("%+v: %v", got, err)
	}
	for _, text := range []string{"c:tier", "a", "a:", "tier"} {
		if _, err := ParseTargets([]string{"a"}, []string{text}, nil); err == nil {
			t.Errorf("%q is taken for labels", text)
		}
	}
	for text, valid := range map[string]bool{"tier": true, "example.com/zone": true, "example.com/*": true, "*": false, "/*": false, "exa mple/*": false, "a/b/c": false, "": false, "tier*": false} {
		if _, err := labelkeys.Parse([]string{"ok", text}); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestProvidersToPublish expects that no provider is allowed by which a client runs a program
// of its own with its own credentials.
func TestProvidersToPublish(t *testing.T) {
	got, err := ParseTargets([]string{"a", "b:tier=gold"}, nil, []string{"b:secretreader,gke"})
	if err != nil || len(got[0].Providers) > 0 || !slices.Equal(got[1].Providers, []string{"secretreader", "gke"}) {
		t.Errorf("%+v: %v", got, err)
	}
	for text, says := range map[string]string{
		"c:secretreader":                  `namespace "c", in which no ClusterProfiles are published`,
		"a":                               "a provider without a name",
		"a:x,":                            "a provider without a name",
		"a:argo-cd-builtin-gcp":           "reserved prefix argo-cd-builtin-",
		"a:secretreader,argo-cd-builtin-": "reserved prefix argo-cd-builtin-",
		"a:Argo-CD-builtin-x y":           "reserved prefix argo-cd-builtin-",
	} {
		if _, err := ParseTargets([]string{"a"}, nil, []string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

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
		{"another", []string{"gke"}, []string{"secretreader"}, nil, "ProviderNotAllowed", "--cluster-profiles-providers"},
		{"one of two", []string{"gke"}, []string{"argo-cd-builtin-gcp", "gke"}, []string{"gke"}, "Published", `left out: "argo-cd-builtin-gcp"`},
		{"a client's own program", []string{"gke"}, []string{"argo-cd-builtin-gcp", "argo-cd-builtin---help"}, nil, "ProviderNotAllowed", `"argo-cd-builtin-gcp", "argo-cd-builtin---help"`},
	} {
		cluster := member("east", func(c *v1beta1.Cluster) {
			c.Spec.Access = nil
			for _, kind := range test.kinds {
				c.Spec.Access = append(c.Spec.Access, v1beta1.Access{Name: "of-" + kind, Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: kind}})
			}
		})
		p := source.of(cluster, Target{Namespace: "a", Providers: test.allowed}, proof{verified: true})
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
