package main

import (
	"strings"
	"testing"
)

// TestTableSaysWhatIsSupported marks releases that newer ones have left behind.
func TestTableSaysWhatIsSupported(t *testing.T) {
	releases := minors(4)
	const mark = " (no longer supported) |"
	if got := table(releases); strings.Contains(got, mark) {
		t.Errorf("nothing is released, and yet:\n%s", got)
	}
	for i := range releases {
		releases[i].Released = true
	}
	if got := table(releases); strings.Count(got, mark) != 2 || !strings.Contains(got, "| v0.1.0"+mark) || !strings.Contains(got, "| v0.1.1"+mark) {
		t.Errorf("four minor releases are released:\n%s", got)
	}
}
