package export

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterregistry/operator/controller/export/argocd"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/labelkeys"
)

// parse reads exports that may be profiles.
func parse(text string) ([]Target, error) {
	return ParseTargets([]byte(text), map[string]format.Format{"ClusterProfile": profiles, "ArgoCDSecret": argocd.New(source)})
}

// TestParseTargets expects that what an export says is taken as it is, and that what it can't
// mean is refused. No provider is allowed by which a client runs a program of its own with its
// own credentials.
func TestParseTargets(t *testing.T) {
	const a, b = `{"namespace": "a", "format": "ClusterProfile"`, `{"namespace": "b", "format": "ClusterProfile"`
	for _, test := range []struct{ reason, text, says string }{
		{"namespaces", "[" + a + "}, " + b + "}]", ""},
		{"twice", "[" + a + "}, " + a + `, "selector": {"matchLabels": {"tier": "gold"}}}]`, `namespace "a" has the format ClusterProfile twice`},
		{"none", "[]", "it has no export"},
		{"no list", a + "}", "cannot unmarshal"},
		{"a field that is none", "[" + a + `, "provider": "x"}]`, `unknown field "provider"`},
		{"no name", `[{"format": "ClusterProfile"}]`, "name of a namespace"},
		{"another kind of name", `[{"namespace": "A_B", "format": "ClusterProfile"}]`, "name of a namespace"},
		{"no format", `[{"namespace": "a"}]`, "set one of ArgoCDSecret, ClusterProfile"},
		{"another kind of selector", "[" + a + `, "selector": {"matchExpressions": [{"key": "k", "operator": "In"}]}}]`, "label selector is not valid"},
		{"a selection", "[" + a + `, "selection": "gold"}]`, ""},
		{"a selection that is none", "[" + a + `, "selection": "Gold"}]`, "is not the name of a ClusterSelection"},
		{"a selection and a selector", "[" + a + `, "selection": "gold", "selector": {}}]`, "a selector and a selection: set one of them"},
		{"labels that are none", "[" + a + `, "labels": ["*"]}]`, "neither the key of a label"},
		{"a provider without a name", "[" + a + `, "providers": ["x", ""]}]`, "a provider without a name"},
		{"a client's own program", "[" + a + `, "providers": ["x", "argo-cd-builtin-gcp"]}]`, "reserved prefix argo-cd-builtin-"},
		{"clients that are told nothing", `[{"namespace": "a", "format": "ArgoCDSecret"}]`, "which need it"},
		{"clients that know themselves", "[" + a + `, "signIn": [{"provider": "x", "hosts": ["a.example.com"], "exec": {"command": "x"}}]}]`, "signIn is for formats"},
		{"credentials that go anywhere", `[{"namespace": "a", "format": "ArgoCDSecret", "signIn": [{"provider": "x", "exec": {"command": "x"}}]}]`, "needs hosts"},
		{"what this client does not run", `[{"namespace": "a", "format": "ArgoCDSecret", "signIn": [{"provider": "x", "hosts": ["a.example.com"], "flux": {"provider": "aws"}}]}]`, "one of [exec aws]"},
		{"one in capitals", "[" + a + `, "providers": ["Argo-CD-builtin-x"]}]`, "reserved prefix argo-cd-builtin-"},
	} {
		_, err := parse(test.text)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
	got, err := parse("[" + a + "}, " + b + `, "selector": {"matchLabels": {"tier": "gold"}}, "labels": ["tier", "example.com/*"], "providers": ["secretreader", "gke"]}]`)
	if err != nil {
		t.Fatal(err)
	}
	if !got[0].Selector.Matches(labels.Set{}) || !got[1].Selector.Matches(labels.Set{"tier": "gold"}) || got[1].Selector.Matches(labels.Set{"tier": "silver"}) {
		t.Errorf("the selectors are %q and %q", got[0].Selector, got[1].Selector)
	}
	if got[0].Labels.Allows("tier") || !got[1].Labels.Allows("tier") || !got[1].Labels.Allows("example.com/x") || got[1].Labels.Allows("other") {
		t.Errorf("the labels are %+v and %+v", got[0].Labels, got[1].Labels)
	}
	if len(got[0].Providers) > 0 || !slices.Equal(got[1].Providers, []string{"secretreader", "gke"}) {
		t.Errorf("the providers are %q and %q", got[0].Providers, got[1].Providers)
	}
}

func TestLabelsToCopy(t *testing.T) {
	for text, valid := range map[string]bool{"tier": true, "example.com/zone": true, "example.com/*": true, "*": false, "/*": false, "exa mple/*": false, "a/b/c": false, "": false, "tier*": false} {
		if _, err := labelkeys.Parse([]string{"ok", text}); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
