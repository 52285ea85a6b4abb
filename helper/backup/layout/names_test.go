package layout

import (
	"strings"
	"testing"
)

func lineage(t *testing.T, prefix, id string) Lineage {
	t.Helper()
	l, err := NewLineage(prefix, id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var sum = strings.Repeat("0a", 32)

func TestNewLineage(t *testing.T) {
	for _, test := range []struct {
		prefix, id string
		directory  string // refused when empty
	}{
		{"", "a", "a/"},
		{"prod", "0b9c4b52-7f1e", "prod/0b9c4b52-7f1e/"},
		{"prod/Fleet_1/v1.2", strings.Repeat("a", 63), "prod/Fleet_1/v1.2/" + strings.Repeat("a", 63) + "/"},
		{"prod", "", ""},
		{"prod", "A", ""},
		{"prod", "a/b", ""},
		{"prod", "..", ""},
		{"prod", "a.b", ""},
		{"prod", "-a", ""},
		{"prod", "a-", ""},
		{"prod", strings.Repeat("a", 64), ""},
		{"/prod", "a", ""},
		{"prod/", "a", ""},
		{"prod//x", "a", ""},
		{"../prod", "a", ""},
		{"prod/..", "a", ""},
		{"prod/./x", "a", ""},
		{".hidden", "a", ""},
		{"pro d", "a", ""},
		{"prod\n", "a", ""},
		{"-prod", "a", ""},
	} {
		l, err := NewLineage(test.prefix, test.id)
		if (err == nil) != (test.directory != "") || err == nil && l.Directory() != test.directory {
			t.Errorf("%q, %q: %q, %v", test.prefix, test.id, l.Directory(), err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, "fleet-20260301-0300": true, strings.Repeat("a", 63): true,
		"": false, "lineage.json": false, "a/b": false, "..": false, "A": false, "a-": false, strings.Repeat("a", 64): false,
	} {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestParse(t *testing.T) {
	l := lineage(t, "prod", "one")
	for key, want := range map[string]struct {
		kind      Kind
		name, sum string
	}{
		l.Manifest("a"):                              {ManifestObject, "a", ""},
		l.Verification("a"):                          {VerificationObject, "a", ""},
		l.Snapshot("a", sum):                         {SnapshotObject, "a", sum},
		l.Descriptor():                               {},
		"prod/one/a/other.json":                      {},
		"prod/one/a/manifest.json/x":                 {},
		"prod/one/a/" + sum[1:] + ".db":              {},
		"prod/one/a/" + sum:                          {},
		"prod/one/A/manifest.json":                   {},
		"prod/one/../two/manifest.json":              {},
		"prod/one//manifest.json":                    {},
		"prod/one2/a/manifest.json":                  {},
		"prod/two/a/manifest.json":                   {},
		"one/a/manifest.json":                        {},
		"prod/one":                                   {},
		"":                                           {},
		"other/prod/one/a/manifest.json":             {},
		"prod/one/a/" + strings.ToUpper(sum):         {},
		"prod/one/a/" + strings.ToUpper(sum) + ".db": {},
	} {
		kind, name, got := l.Parse(key)
		if kind != want.kind || name != want.name || got != want.sum {
			t.Errorf("%s: %v %q %q, want %+v", key, kind, name, got, want)
		}
	}
}
