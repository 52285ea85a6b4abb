package clusterprofile

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

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
		got, err := ParseTargets(test.texts, nil)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if test.reason == "namespaces" && (len(got) != 3 || !got[0].Selector.Empty() || !got[2].Selector.Empty() || !got[1].Selector.Matches(labels.Set{"tier": "gold", "env": "y"}) || got[1].Selector.Matches(labels.Set{"tier": "gold"})) {
			t.Errorf("%+v", got)
		}
	}
}

func TestLabelsToCopy(t *testing.T) {
	got, err := ParseTargets([]string{"a", "b:tier=gold"}, []string{"b:tier,example.com/*"})
	if err != nil || got[0].Labels.Allows("tier") || !got[1].Labels.Allows("tier") || !got[1].Labels.Allows("example.com/x") || got[1].Labels.Allows("other") {
		t.Errorf("%+v: %v", got, err)
	}
	for _, text := range []string{"c:tier", "a", "a:", "tier"} {
		if _, err := ParseTargets([]string{"a"}, []string{text}); err == nil {
			t.Errorf("%q is taken for labels", text)
		}
	}
	for text, valid := range map[string]bool{"tier": true, "example.com/zone": true, "example.com/*": true, "*": false, "/*": false, "exa mple/*": false, "a/b/c": false, "": false, "tier*": false} {
		if _, err := labelkeys.Parse([]string{"ok", text}); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
