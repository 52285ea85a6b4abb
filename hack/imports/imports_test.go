package imports

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	root   = "../.."
	module = "github.com/clusterregistry/operator"
	// unnamed is the rule for all files that no other one is for.
	unnamed = "unnamed"
)

// rule is a rule of depguard, and what of it counts here.
type rule struct {
	Files    []string `json:"files"`
	ListMode string   `json:"list-mode"`
	Allow    []string `json:"allow"`
	Deny     []struct {
		Pkg string `json:"pkg"`
	} `json:"deny"`
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Enable   []string `json:"enable"`
			Settings struct {
				Depguard struct {
					Rules map[string]rule `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(config.Linters.Enable, "depguard") {
		t.Fatal("depguard is off")
	}
	return config.Linters.Settings.Depguard.Rules
}

// names reports whether a rule is for a file, as depguard decides it. Only globs of
// which that is certain are allowed: all files, all in a directory, and all below it.
func (r rule) names(t *testing.T, file string) bool {
	t.Helper()
	named := false
	for _, pattern := range r.Files {
		glob, negated := strings.CutPrefix(pattern, "!")
		local, below := strings.CutPrefix(glob, "${config-path}/")
		var match bool
		switch directory, last := path.Split(local); {
		case strings.ContainsAny(directory, "*?[]{}\\") || !below && glob != "**":
			t.Fatalf("the glob %s is none that this test knows", pattern)
		case last == "**":
			match = strings.HasPrefix(file, directory)
		case last == "*.go":
			match = path.Dir(file)+"/" == directory
		default:
			t.Fatalf("the glob %s is none that this test knows", pattern)
		}
		if match && negated {
			return false
		}
		named = named || match
	}
	return named
}

// of returns the rules that are for a file.
func of(t *testing.T, all map[string]rule, file string) []string {
	t.Helper()
	var out []string
	for name, rule := range all {
		if rule.names(t, file) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// files returns the Go files of this repository, those of nested modules included.
func files(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		local, _ := filepath.Rel(root, file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(local, ".") && local != "." || local == "bin" || local == "dist"):
			return filepath.SkipDir // what is built
		case strings.HasSuffix(local, ".go"):
			out = append(out, filepath.ToSlash(local))
		}
		return nil
	})
	if err != nil || len(out) < 300 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

// TestEachFileHasARule expects a rule for each file, and for each that could come
// beside it or below.
func TestEachFileHasARule(t *testing.T) {
	all := rules(t)
	for _, file := range files(t) {
		if named := of(t, all, file); len(named) != 1 || named[0] == unnamed {
			t.Errorf("%s is in the rules %v, want one of its own", file, named)
		}
		for directory := path.Dir(file); ; directory = path.Dir(directory) {
			for _, other := range []string{"new.go", "new/new.go", "new/new_test.go"} {
				if named := of(t, all, path.Join(directory, other)); len(named) != 1 {
					t.Errorf("%s would be in the rules %v, want one", path.Join(directory, other), named)
				}
			}
			if directory == "." {
				break
			}
		}
	}
	for file, want := range map[string]string{
		"new.go": unnamed, "new/new.go": unnamed, "new/apis/operator/new.go": unnamed, "operator/new/new.go": unnamed,
		"operator/etcdnew/new.go": unnamed, "operator/run.go": "operator", "operator/etcd/new/new.go": "etcd",
	} {
		if named := of(t, all, file); !slices.Equal(named, []string{want}) {
			t.Errorf("%s is in the rules %v, want %s", file, named, want)
		}
	}
}

// TestRulesDeny expects each rule to deny all of this module but what it allows, and
// that to be whole packages: depguard compares the beginnings of paths, to which apis
// is one of apiserver, and only with the last of its entries that it could be.
func TestRulesDeny(t *testing.T) {
	for name, rule := range rules(t) {
		if rule.ListMode != "lax" || len(rule.Deny) != 1 || rule.Deny[0].Pkg != module {
			t.Errorf("rule %s does not deny this module (mode %s, %v)", name, rule.ListMode, rule.Deny)
		}
		if name == unnamed && len(rule.Allow) > 0 {
			t.Errorf("rule %s allows %v", name, rule.Allow)
		}
		for _, entry := range rule.Allow {
			if !strings.HasPrefix(entry, module+"/") || !strings.HasSuffix(entry, "/") && !strings.HasSuffix(entry, "$") {
				t.Errorf("rule %s allows %s, which is neither a package of this module (with a $) nor a directory (with a slash)", name, entry)
			}
			for _, other := range rule.Allow {
				if other != entry && strings.HasSuffix(entry, "/") && strings.HasPrefix(other, entry) {
					t.Errorf("rule %s allows %s and, below it, %s", name, entry, other)
				}
			}
		}
	}
}
