package decide

import (
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestFunctions has each function and macro in the language: none is there for nothing, and a
// name of one that is misspelled would be refused.
func TestFunctions(t *testing.T) {
	env, err := language()
	if err != nil {
		t.Fatal(err)
	}
	there := env.Functions()
	for name := range functions {
		if there[name] == nil {
			t.Errorf("the language has no function %q", name)
		}
	}
	known := map[string]bool{}
	for _, macro := range env.Macros() {
		known[macro.Function()] = true
	}
	for name := range macros {
		if !known[name] {
			t.Errorf("the language has no macro %q", name)
		}
	}
	if len(known) != len(macros) {
		t.Errorf("the language has the macros %v, want %v", known, macros)
	}
}

// TestBounds refuses what limits of cost don't stop: they count what one call has cost when it
// has returned, and a list that is in another one many times once.
func TestBounds(t *testing.T) {
	grow, tree := "cluster.name", "[cluster.properties]"
	for range 10 {
		grow = "[" + grow + "].map(s, s + s + s + s)[0]"
		tree += ".map(x, [x, x, x, x, x, x, x, x, x, x])"
	}
	for name, test := range map[string]struct{ where, says string }{
		"a text of a text for each character": {"[cluster.name].map(x, x.replace('', x)).size() > 0", `don't have the function "replace"`},
		"a text of the same one many times":   {"cluster.labels.map(k, cluster.name).join(cluster.name) == ''", `don't have the function "join"`},
		"a text of lists in lists":            {"'%s'.format([cluster.name]) == ''", `don't have the function "format"`},
		"a text that grows":                   {grow + " == ''", "only numbers can be added"},
		"bytes that grow":                     {"[b'a'].map(s, s + s).size() > 0", "only numbers can be added"},
		"a list that grows":                   {"[[1]].map(l, l + l).size() > 0", "value of type list(list(int))"},
		"a list that is added":                {"(['a'] + cluster.labels.map(k, k)).size() > 0", "only numbers can be added"},
		"a sum of what is not known":          {"dyn(cluster.name) + dyn(cluster.name) == ''", "only numbers can be added"},
		"a tree that is compared":             {"[" + tree + "].map(x, x == x)[0]", "is not for selections"},
		"a list of what is not known":         {"[dyn(cluster.labels)].size() > 0", "list(dyn) is not for selections"},
		"maps in maps":                        {"{'a': cluster.labels}.size() > 0", "map(string, map(string, string)) is not for selections"},
		"a list of clusters":                  {"[cluster].map(c, c == c)[0]", "list(clusterregistry.Cluster) is not for selections"},
		"maybe a list in a list":              {"[optional.of(cluster.labels)].size() > 0", "is not for selections"},
		"a long list":                         {"lists.range(1000000) == [0]", `don't have the function "lists.range"`},
		"each with each":                      {"sets.contains(cluster.labels.map(k, k), ['a'])", `don't have the function "sets.contains"`},
		"an expression that grows":            {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 2) + ".hasValue()", "undeclared reference to 'optMap'"},
		"another one that grows":              {"optional.of(1)" + strings.Repeat(".optFlatMap(a, optional.of(a))", 2) + ".hasValue()", "undeclared reference to 'optFlatMap'"},
		"a deep expression":                   {strings.Repeat("{'a': ", depth+1) + "1" + strings.Repeat("}", depth+1) + ".size() > 0", "spec.where is not valid: expression recursion limit exceeded"},
		"a regular expression that repeats":   {"cluster.name.matches('(((a{9}){9}){9})')", "too large with its repetitions"},
		"one that would take all of memory":   {"cluster.name.matches('^(?:" + strings.Repeat("a", 3300) + "){1000}')", "too large with its repetitions"},
		"one in a macro":                      {"cluster.labels.exists(k, 'a'.matches('(b|c{100}){3}'))", "too large with its repetitions"},
		"a regular expression of a property":  {"cluster.name.matches(cluster.properties['a'])", "is not a literal"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(operatorv1alpha1.ClusterSelectionSpec{Where: test.where})
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "spec.where is not valid") || len(err.Error()) > 500 {
				t.Errorf("the error is %v, want one with %q", err, test.says)
			}
		})
	}
	view := NewView(entry("a"), 0, nil)
	for where, says := range map[string]string{
		"quantity('1e999999999').isInteger()":                                 "an exponent of two digits",
		"quantity('" + strings.Repeat("1", 65) + "').isInteger()":             "at most 64 characters",
		"!isQuantity('1e999999999') && isQuantity('1e3')":                     "",
		"cluster.properties.map(k, k).filter(k, k > 'a').size() > 0":          "",
		"cluster.taints.map(t, t.key) == ['gpu'] && has(cluster.labels.tier)": "",
		"cluster.taints.filter(t, t.effect == 'NoSchedule').size() + 1 == 2":  "",
		"cluster.version.matches('^v1[.][0-9]{1,3}[.]')":                      "",
		"cluster.name.matches('^(?i:prod|[a-z]{1,63})$')":                     "",
		"cluster.name.split('-').size() == 1 && [3, 1].max() == 3":            "",
	} {
		t.Run(where, func(t *testing.T) {
			said, _, err := compiled(t, where).evaluate(t.Context(), view)
			if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) || said.matches != (says == "") {
				t.Errorf("it is %+v with the error %v, want %q", said, err, says)
			}
		})
	}
}
