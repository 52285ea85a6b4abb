// These test hack/parts.sh as well.
package main

import (
	"os/exec"
	"strings"
	"testing"
)

// script runs two parts of which the second fails unless $FIXED is set.
const script = `
set -uo pipefail
. ../parts.sh
part first bash -c 'echo first ran'
part second bash -c '[ -n "${FIXED:-}" ] && echo second ran'
skipped third
report test`

func TestParts(t *testing.T) {
	for _, test := range []struct {
		reason      string
		environment []string
		passes      bool
		has, lacks  []string
	}{
		{"a part that fails fails all", nil, false, []string{"first ran", "FAILED", "not run"}, []string{"\nsecond ran"}},
		{"all parts pass", []string{"FIXED=1"}, true, []string{"first ran", "second ran", "not run"}, []string{"FAILED"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
			cmd.Env = append(cmd.Environ(), append(test.environment, "PARTS_LOG="+t.TempDir())...)
			out, err := cmd.CombinedOutput()
			if (err == nil) != test.passes {
				t.Errorf("%v\n%s", err, out)
			}
			for _, want := range test.has {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			for _, unwanted := range test.lacks {
				if strings.Contains(string(out), unwanted) {
					t.Errorf("%q is in\n%s", unwanted, out)
				}
			}
		})
	}
}

// TestFailures has failed tests be named once, although the log ends with that of a process
// and with another report, and packages that can't be built or hang.
func TestFailures(t *testing.T) {
	const script = `
set -uo pipefail
. ../parts.sh
part broken bash -c '
  echo "--- FAIL: TestBroken (1.0s)"
  echo "    --- FAIL: TestBroken/case (0.5s)"
  for i in $(seq 20); do echo "        broken_test.go:$i: what it did"; done
  echo "        broken_test.go:21: what was wrong"
  echo "        etcd.go:1: the log of a member:"
  for i in $(seq 100); do echo "        {\"level\":\"warn\"}"; done
  echo FAIL
  printf "FAIL\\texample.org/a [build failed]\\npanic: test timed out after 1h0m0s\\n\\trunning tests:\\n\\t\\tTestHung (10m0s)\\n"
  echo "=== the end of .test/inner.log"
  echo "--- FAIL: TestBroken (1.0s)"
  echo "=== tests that failed in inner"
  echo "--- FAIL: TestBroken (1.0s)"
  echo "=== make test: how long each part took"
  exit 1'
report test`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(cmd.Environ(), "PARTS_LOG="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("it passes:\n%s", out)
	}
	_, got, _ := strings.Cut(string(out), "=== tests that failed in broken\n")
	for _, want := range []string{"--- FAIL: TestBroken (1.0s)\n", "--- FAIL: TestBroken/case (0.5s)\n", "test.go:1: what it did\n", "[...]\n", "what was wrong\n", "the log of a member:\n",
		"FAIL\texample.org/a [build failed]\n", "panic: test timed out after 1h0m0s\n", "\t\tTestHung (10m0s)\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "--- FAIL: TestBroken (1.0s)"); n != 1 {
		t.Errorf("TestBroken is named %d times in\n%s", n, got)
	}
	for _, no := range []string{"level", ":9: what it did\n"} {
		if strings.Contains(got, no) {
			t.Errorf("%q is in\n%s", no, got)
		}
	}
}
