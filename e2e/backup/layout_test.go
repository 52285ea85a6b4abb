package backup

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// object is a key in the store: a lineage, the name of a backup and what it is of that.
var object = regexp.MustCompile(`^([0-9a-f-]{36})/(?:lineage\.json|([a-z0-9-]+)/(manifest\.json|verification\.json|([0-9a-f]{64})[a-z.]*))$`)

// stored is what the store has of the backups of a lineage.
type stored struct {
	// whole are the names of the backups with a manifest, and verified those with the
	// outcome of a verification.
	whole, verified []string
	// sums are the checksums in the names of snapshots, by backup.
	sums map[string][]string
}

// read reads what keys say. Every key has to be of the lineage, and every manifest has to
// have its snapshot: it is written last.
func read(keys []string, lineage string) (stored, error) {
	out := stored{sums: map[string][]string{}}
	for _, key := range keys {
		match := object.FindStringSubmatch(key)
		if match == nil || match[1] != lineage {
			return out, fmt.Errorf("%s is not what a backup of lineage %s consists of", key, lineage)
		}
		switch name, part := match[2], match[3]; {
		case name == "":
		case part == "manifest.json":
			out.whole = append(out.whole, name)
		case part == "verification.json":
			out.verified = append(out.verified, name)
		default:
			out.sums[name] = append(out.sums[name], match[4])
		}
	}
	for _, name := range out.whole {
		if len(out.sums[name]) == 0 {
			return out, fmt.Errorf("backup %s has a manifest and no snapshot", name)
		}
	}
	slices.Sort(out.whole)
	return out, nil
}

// TestRead holds read to say what is wrong.
func TestRead(t *testing.T) {
	lineage, sum := "0b9c4b52-7d1f-4b6e-9a51-2f0d7f0c9a11", strings.Repeat("a", 64)
	for reason, test := range map[string]struct {
		keys  []string
		whole int
		says  string
	}{
		"a backup":             {[]string{lineage + "/lineage.json", lineage + "/one/" + sum + ".db", lineage + "/one/manifest.json", lineage + "/one/verification.json"}, 1, ""},
		"one that is half way": {[]string{lineage + "/one/" + sum + ".db"}, 0, ""},
		"without its snapshot": {[]string{lineage + "/one/manifest.json"}, 1, "has a manifest and no snapshot"},
		"another lineage":      {[]string{strings.Replace(lineage, "0", "1", 1) + "/lineage.json"}, 0, "is not what a backup"},
		"something else":       {[]string{lineage + "/one/other"}, 0, "is not what a backup"},
	} {
		got, err := read(test.keys, lineage)
		if len(got.whole) != test.whole || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
}
