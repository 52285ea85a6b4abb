package main

import (
	"os"
	"testing"

	"github.com/clusterregistry/operator/internal/memlimit"
)

// TestLimitMemory is about what etcd is told of its container's memory.
func TestLimitMemory(t *testing.T) {
	for _, test := range []struct {
		reason string
		before string
		limit  int64
		want   string
	}{
		{"the container has a limit", "", 1610612736, "1610612736"},
		{"the container has none", "", 0, ""},
		{"the manifest says what holds", "off", 1610612736, "off"},
	} {
		t.Setenv(memlimit.Variable, test.before)
		if err := limitMemory(test.limit); err != nil {
			t.Fatal(err)
		}
		if got := os.Getenv(memlimit.Variable); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
