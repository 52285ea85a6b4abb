package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// messageWords are those that messages have to avoid besides the ones of the pages,
// where they are more often meant as they are.
var messageWords = map[string]*regexp.Regexp{
	"the host cluster, or kube-apiserver when it acts": regexp.MustCompile(`\bthe host(?:$|[^\w ]| (?:[^c]|c[^l]))`),
	"waiting for":                         regexp.MustCompile(`\bwaits (for|until|to)\b`),
	"ready, available":                    regexp.MustCompile(`\b(members?|servers?) (of \S+ )?serves?\b|\bregistry (serves|does not serve)\b`),
	"is not a valid ...":                  regexp.MustCompile(`(\b(which|it|that|who)|%[qsvT]) (is|are) (no [a-km-z]|none\b)`),
	"reconcile, observe, process, manage": regexp.MustCompile(`\b(look|looks|looked) (at|after|into)\b`),
	"completed, rolled back":              regexp.MustCompile(`\bis over\b`),
	"exited, is terminating, expires":     regexp.MustCompile(`\b(ended with code|(container|pod|certificate) (%s )?ends?)\b`),
	"retry":                               regexp.MustCompile(`\b(is|are) tried again\b`),
}

// TestMessages looks for such words in what programs say: in conditions, events,
// errors, logs, metrics and flags, which are all of the strings with a space in them.
func TestMessages(t *testing.T) {
	found, seen := map[string]bool{}, 0
	for _, program := range []string{"operator", "helper", "apiserver", "controller", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", program), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated") {
				return err
			}
			problems, messages, err := misworded(path, nil)
			for _, problem := range problems {
				found[problem] = true
			}
			seen += messages
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(found)) {
		t.Error(problem)
	}
	if seen < 500 {
		t.Errorf("%d messages were found: they must be somewhere else", seen)
	}
}

// TestMisworded finds words where they are, and in messages only.
func TestMisworded(t *testing.T) {
	for source, want := range map[string]string{
		`"waits for pod %s"`:                              `1:26: write "waiting for" in place of "waits for"`,
		`"a" + "2 of 3 members serve"`:                    `1:32: write "ready, available" in place of "members serve"`,
		`"nobody asks"`:                                   `1:26: write "someone, anyone, no one" in place of "nobody"`,
		"`asked of the host's kubelet`":                   `1:26: write "the host cluster, or kube-apiserver when it acts" in place of "the host'"`,
		`"%q is no version"`:                              `1:26: write "is not a valid ..." in place of "%q is no v"`,
		`"the host cluster has a certificate of its own"`: "",
		`"v0.1.0, which is no longer supported"`:          "",
		`"nobody"`:                                        "", // a name or a key
		`struct{ A int ` + "`json:\"waits for\"`" + `}{}`: "",
		`"is ready" // somebody waits for it`:             "",
	} {
		problems, _, err := misworded("source.go", "package p; var message = "+source+"\n")
		if want != "" {
			want = "source.go:" + want
		}
		if err != nil || strings.Join(problems, "\n") != want {
			t.Errorf("%s: %q, %v", source, problems, err)
		}
	}
}

// misworded returns where a Go file says a word that messages have to avoid, and how
// many messages it has. The source is read from the path if it is nil.
func misworded(path string, source any) (problems []string, messages int, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	if err != nil {
		return nil, 0, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			node.Tag = nil
		case *ast.BasicLit:
			message, err := strconv.Unquote(node.Value)
			if node.Kind != token.STRING || err != nil || !strings.Contains(message, " ") {
				return true
			}
			messages++
			for _, list := range []map[string]*regexp.Regexp{words, messageWords} {
				for write, pattern := range list {
					if word := pattern.FindString(message); word != "" {
						problems = append(problems, files.Position(node.Pos()).String()+": write "+strconv.Quote(write)+" in place of "+strconv.Quote(word))
					}
				}
			}
		}
		return true
	})
	return problems, messages, nil
}
