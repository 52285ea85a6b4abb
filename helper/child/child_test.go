package child

import (
	"context"
	"strings"
	"testing"
)

// TestCommand is about what a program is given, and when it ends.
func TestCommand(t *testing.T) {
	t.Setenv("ETCD_NAME", "m0")
	t.Setenv("GOMEMLIMIT", "1GiB")
	out, err := Command(t.Context(), "/usr/bin/env").Output()
	if err != nil || strings.Contains(string(out), "ETCD_") || !strings.Contains(string(out), "GOMEMLIMIT=1GiB") {
		t.Errorf("it is given %s, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := Command(ctx, "/bin/sh", "-c", "exec sleep 3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("it does not end with the context")
	}
}
