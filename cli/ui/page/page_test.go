package page

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var recorded = regexp.MustCompile(`^/\* Made by "make ui" from src, whose SHA-256 is ([0-9a-f]{64})\. \*/`)

// TestBuiltFromSources compares what the script and the style say that they were made of with
// what there is. That they were is what "make verify-ui" checks.
func TestBuiltFromSources(t *testing.T) {
	names, err := filepath.Glob("src/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no sources: %v", err)
	}
	names = append(names, "package-lock.json", "build.mjs")
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write([]byte(filepath.ToSlash(name) + "\n"))
		hash.Write(content)
	}
	want := hex.EncodeToString(hash.Sum(nil))
	for _, name := range []string{"app.js", "app.css"} {
		content, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := recorded.FindSubmatch(content); found == nil || string(found[1]) != want {
			t.Errorf("%s was made of other sources: run make ui", name)
		}
	}
}

// TestNoMarkupFromText keeps out of the sources what would make markup or code of a text, and
// addresses of other servers.
func TestNoMarkupFromText(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setHTML|https?://|XMLHttpRequest|WebSocket|sendBeacon|import\(`)
	for _, name := range []string{"app.js", "app.css", "index.html"} {
		content, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := forbidden.FindString(string(content)); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		for _, inline := range []string{"style=", "<style", "onload=", "onclick="} {
			if name == "index.html" && strings.Contains(string(content), inline) {
				t.Errorf("the content security policy forbids %q in %s", inline, name)
			}
		}
	}
}

// TestLockNamesNoHost has the lock file say which packages are meant by their sums, and not
// where someone got them.
func TestLockNamesNoHost(t *testing.T) {
	content, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), `"resolved"`) || !strings.Contains(string(content), `"integrity": "sha512-`) {
		t.Error("it names where packages came from, or lacks their sums: the .npmrc beside it prevents that")
	}
}
