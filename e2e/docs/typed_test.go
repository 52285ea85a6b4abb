package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestTyped runs the kubectl that guides are typed with on one that answers the first time
// with what is "early" and an exit code, and then with "late" and success.
func TestTyped(t *testing.T) {
	for _, test := range []struct {
		reason, command, early string
		code                   int
		again                  bool
	}{
		{"a registry that is not ready for a moment", "registry status", "one needs attention", 4, true},
		{"a status that can't be read", "registry status", "no such host", 1, false},
		{"the status of one registry, which no guide asks for", "registry status fleet", "one needs attention", 4, false},
		{"a role that is not known yet", "auth can-i list crc --as=ann", "no", 1, true},
		{"a role that is not known yet to a server of an independent registry", "--kubeconfig=a --context=ann get crc", "Error from server (Forbidden): no", 1, true},
		{"a set that is not known yet", "get crc --output=name --as=ann", "", 0, true},
		{"a use that is not allowed yet", "get crc --output=name --as=ann", "Error from server (Forbidden): no", 1, true},
		{"a cluster that is hidden", "get crc west --as=ann", "Error from server (NotFound): no", 1, false},
		{"a list that is shown", "get crc --as=ann", "No resources found", 0, false},
		{"what changes something", "delete crc east", "Error from server (Forbidden): no", 1, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			dir := t.TempDir()
			kubectl := filepath.Join(dir, "kubectl")
			const script = "#!/bin/sh\n[ ! -e \"$0.asked\" ] || { echo late; exit 0; }\n: > \"$0.asked\"\necho \"$EARLY\"\nexit \"$CODE\"\n"
			if err := os.WriteFile(kubectl, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
				t.Fatal(err)
			}
			// In the end, it tells what it is told.
			retries := filepath.Join(dir, "retries")
			for _, patience := range []string{"600", "0"} {
				cmd := exec.CommandContext(t.Context(), typed(t), strings.Fields(test.command)...)
				cmd.Env = append(os.Environ(), "KUBECTL="+kubectl, "PATIENCE="+patience, "RETRIES="+retries, "EARLY="+test.early, fmt.Sprintf("CODE=%d", test.code))
				out, err := cmd.CombinedOutput()
				want, code := test.early, test.code
				if test.again && patience != "0" {
					want, code = "late", 0
				}
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code || strings.TrimSpace(string(out)) != want {
					t.Errorf("with patience for %s seconds it exits with %v and prints %q, not with %d and %q", patience, err, out, code, want)
				}
				if err := os.Remove(kubectl + ".asked"); err != nil {
					t.Error(err)
				}
			}
			recorded, err := os.ReadFile(retries)
			if want := "1 times in"; (err == nil) != test.again || test.again && (!strings.HasPrefix(string(recorded), want) || !strings.HasSuffix(string(recorded), ": kubectl "+test.command+"\n")) {
				t.Errorf("recorded is %q: %v", recorded, err)
			}
		})
	}
}

// typed is the path of the kubectl that guides are typed with.
func typed(t *testing.T) string {
	t.Helper()
	return filepath.Join(framework.Root(t), "e2e", "docs", "testdata", "kubectl")
}
