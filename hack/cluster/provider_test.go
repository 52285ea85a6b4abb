package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoot expects a checkout to be found from below it, and --components to make
// any other directory do.
func TestRoot(t *testing.T) {
	checkout, elsewhere := t.TempDir(), t.TempDir()
	below, components := filepath.Join(checkout, "docs"), filepath.Join(checkout, pins)
	for _, dir := range []string{below, filepath.Join(components, "kubernetes")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		reason, from, components string
		wantTop, wantErr         string
	}{
		{reason: "the top", from: checkout, wantTop: checkout},
		{reason: "below the top", from: below, wantTop: checkout},
		{reason: "no checkout", from: elsewhere, wantErr: "change into a checkout"},
		{reason: "another project", from: elsewhere, components: components, wantTop: elsewhere},
		{reason: "the flag wins over the checkout that one is in", from: below, components: components, wantTop: below},
		{reason: "a directory without pins", from: elsewhere, components: checkout, wantErr: "--components " + checkout},
	} {
		t.Chdir(test.from)
		top, found, err := options{components: test.components}.root()
		if test.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("%s: got %v, want an error with %q", test.reason, err, test.wantErr)
			}
			continue
		}
		if err != nil || top != test.wantTop || found != components {
			t.Errorf("%s: got %s, %s, %v, want %s", test.reason, top, found, err, test.wantTop)
		}
	}
}
