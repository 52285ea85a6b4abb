package memlimit

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	for _, test := range []struct {
		reason string
		live   uint64
		limit  int64
		want   int
	}{
		{"before the first collection", 0, math.MaxInt64, 100},
		{"little is in use", 16 << 20, math.MaxInt64, 400},
		{"as much is in use as is spare", 64 << 20, math.MaxInt64, 100},
		{"much is in use", 1 << 30, math.MaxInt64, 100},
		{"a container's limit of 2 GiB", 16 << 20, 2 << 30, 400},
		{"a small container", 16 << 20, 256 << 20, 100},
		{"a container in between", 16 << 20, 512 << 20, 200},
	} {
		if got := percent(test.live, test.limit); got != test.want {
			t.Errorf("%s: GOGC is %d, want %d", test.reason, got, test.want)
		}
	}
}

// TestCollectLess makes sure that the environment's GOGC holds, and that without one what was
// set before a collection is set again after it. It is one test because the second half lasts
// as long as the process does.
func TestCollectLess(t *testing.T) {
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "50")
	CollectLess()
	runtime.GC()
	if now := debug.SetGCPercent(usual); now != 50 {
		t.Errorf("the environment says 50, and GOGC is %d", now)
	}

	t.Setenv("GOGC", "")
	CollectLess()
	gogc := func() int {
		now := debug.SetGCPercent(usual)
		debug.SetGCPercent(now)
		return now
	}
	for deadline := time.Now().Add(10 * time.Second); gogc() <= usual; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("GOGC is what it was although next to nothing is in use")
		}
	}
}
