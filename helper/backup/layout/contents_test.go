package layout

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestContents(t *testing.T) {
	l := lineage(t, "prod", "one")
	other := strings.Repeat("1b", 32)
	old, recent := start, start.Add(25*time.Hour)
	c := l.Read([]Object{
		{l.Descriptor(), old},
		{l.Manifest("whole"), old}, {l.Snapshot("whole", sum), old}, {l.Verification("whole"), old},
		{l.Snapshot("again", other), old}, {l.Snapshot("again", sum), recent}, {l.Manifest("again"), recent},
		{l.Verification("interrupted"), old}, {l.Snapshot("interrupted", sum), old},
		{l.Verification("verified-now"), recent},
		{l.Snapshot("written-now", sum), recent},
		{l.Manifest("unreadable"), old}, {l.Snapshot("unreadable", sum), old},
		{l.Manifest("without"), old},
		{"prod/one/whole/notes.txt", old},
		{lineage(t, "prod", "two").Snapshot("interrupted", sum), old},
		{"prod/one/.cache/x.db", recent.Add(1000 * time.Hour)},
	})
	if got, want := c.Names(), []string{"again", "unreadable", "whole", "without"}; !slices.Equal(got, want) {
		t.Errorf("backups are %v, want %v", got, want)
	}
	var readable []Backup
	for _, name := range []string{"whole", "again", "without"} {
		readable = append(readable, Backup{Manifest: NewManifest(l, backup(name, 9, old))})
	}
	for i, want := range []bool{true, true, false} {
		if got := c.HasSnapshot(readable[i].Manifest); got != want {
			t.Errorf("%s has its snapshot: %v", readable[i].Name, got)
		}
	}
	if !c.HasVerification("whole") || c.HasVerification("again") || c.HasVerification("none") {
		t.Error("another one is verified")
	}
	if got, want := c.Left(l, readable), []string{l.Snapshot("again", other), l.Snapshot("interrupted", sum), l.Verification("interrupted")}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if got, want := c.Removal(l, "whole"), []string{l.Manifest("whole"), l.Verification("whole"), l.Snapshot("whole", sum)}; !slices.Equal(got, want) {
		t.Errorf("removed are %v, want %v", got, want)
	}
	if got, want := c.Removal(l, "interrupted"), []string{l.Verification("interrupted"), l.Snapshot("interrupted", sum)}; !slices.Equal(got, want) {
		t.Errorf("removed are %v, want %v", got, want)
	}
	if got := c.Removal(l, "none"); got != nil {
		t.Errorf("removed are %v", got)
	}
}
