package command

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestUsage expects the memory of this program, and of one that it ran.
func TestUsage(t *testing.T) {
	if err := exec.CommandContext(t.Context(), os.Args[0], "-test.list=^$").Run(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	Usage(&out, time.Now())
	if said := regexp.MustCompile(`^it took 0\.\d s, \d+\.\d s of CPU and [1-9]\d* MiB; the programs that it ran, \d+\.\d s of CPU and [1-9]\d* MiB\n$`); !said.MatchString(out.String()) {
		t.Errorf("it says %q", out.String())
	}
}
