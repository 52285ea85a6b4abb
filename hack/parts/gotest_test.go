package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fixture writes a module whose tests end in all ways.
func fixture(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.org/fixture\n\ngo 1.26.0\n",
		"good/good_test.go": `package good
import ("testing"; "time")
func TestGood(t *testing.T) { t.Log("what nobody needs"); t.Log("retry: it was busy"); time.Sleep(20*time.Millisecond) }
func TestSkipped(t *testing.T) { t.Skip("no reason") }`,
		"bad/bad_test.go": `package bad
import "testing"
func TestBad(t *testing.T) {
	t.Run("fine", func(t *testing.T) { t.Log("what nobody needs") })
	t.Run("case", func(t *testing.T) { t.Error("what was wrong") })
}`,
		"broken/broken_test.go": "package broken\nvar _ = undefined\n",
		"hung/hung_test.go": `package hung
import ("testing"; "time")
func TestHung(t *testing.T) { t.Log("what it waits for"); time.Sleep(time.Minute) }`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// hung is how a test is named that ran when the time was up: Go rounds for how long it had run.
var hung = regexp.MustCompile(`TestHung \(1[0-9]s\)\n`)

// TestGoTest has a part's tests be printed as "go test" does it, and be in the report.
func TestGoTest(t *testing.T) {
	cmd, out, _ := bash(t.Context(), t, `. ../parts.sh; part unit bash -c '$PARTS_PROGRAM test -C "$FIXTURE" -timeout 15s ./...'; report test`, "FIXTURE="+fixture(t), "GOFLAGS=")
	if err := cmd.Run(); err == nil {
		t.Errorf("tests fail, and the script does not:\n%s", out)
	}
	shown, rest, _ := strings.Cut(out.String(), "=== the end of ")
	for _, want := range []string{
		"--- FAIL: TestBad (", "s)\n    --- FAIL: TestBad/case (", "s)\n    bad_test.go:5: what was wrong\n", "FAIL\texample.org/fixture/bad\t",
		"undefined: undefined\n", "FAIL\texample.org/fixture/broken [build failed]\n", "panic: test timed out after 15s", "what it waits for\n", "ok  \texample.org/fixture/good\t",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing in\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "nobody") || strings.Contains(shown, "=== RUN") {
		t.Errorf("tests that pass are in\n%s", shown)
	}
	_, failed, _ := strings.Cut(rest, "=== tests that failed in unit\n")
	for _, want := range []string{"--- FAIL: TestBad/case (", "FAIL\texample.org/fixture/broken [build failed]\n"} {
		if !strings.Contains(failed, want) {
			t.Errorf("%q is not named among what failed in\n%s", want, failed)
		}
	}
	if !hung.MatchString(failed) {
		t.Errorf("%q is not named among what failed in\n%s", hung, failed)
	}
	_, table, _ := strings.Cut(rest, "how long each part took\n")
	for _, want := range []string{" s  unit: good.TestGood\n", "retries: 1\n", "2 passed, 3 failed, 1 skipped\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
}

// TestInterrupted has tests be named that ran when "go test" was stopped.
func TestInterrupted(t *testing.T) {
	var out strings.Builder
	p := &printer{out: &out, tests: map[string]*output{}}
	events := `{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"run","Package":"a","Test":"TestHung"}
{"Action":"run","Package":"a","Test":"TestHung/case"}
{"Action":"output","Package":"a","Test":"TestHung/case","Output":"what it waits for\n"}
{"Action":"run","Package":"b","Test":"TestOther"}
`
	if err := p.print(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	const want = "--- FAIL: TestHung (it has not ended)\n--- FAIL: TestHung/case (it has not ended)\nwhat it waits for\n--- FAIL: TestOther (it has not ended)\n"
	if out.String() != want {
		t.Errorf("it prints\n%s", out.String())
	}
}
