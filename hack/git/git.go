// Package git asks git about this repository.
package git

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Run runs git in a folder and returns what it prints, without the last line's
// end. The error holds what git says is wrong.
func Run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
