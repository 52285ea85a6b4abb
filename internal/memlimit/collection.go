package memlimit

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// spare is how much a program may allocate at least before its garbage is collected,
	// and spareShare the part of Go's memory limit that it is at most.
	spare      = 64 << 20
	spareShare = 16
	// usual is GOGC's default: garbage is collected when there is as much as what is in use.
	usual = 100
)

// CollectLess has the garbage of a program be collected when there are 64 MiB of it,
// where Go would do that at less. What is in use of a server that serves a few clusters is
// so little that each request pays for collections; it takes at most those 64 MiB more of
// memory, and one that has more than that in use none. The limit on memory holds all the
// same. An environment with GOGC says itself what holds.
func CollectLess() {
	if os.Getenv("GOGC") != "" {
		return
	}
	after(&collector{percent: usual})
}

// collector is what sets when the next collection begins.
type collector struct{ percent int }

// after sets that anew after each collection: an object that nothing holds is found then.
func after(c *collector) {
	c.set()
	runtime.AddCleanup(new(*byte), after, c)
}

// set goes by what the last collection has found to be in use.
func (c *collector) set() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := percent(live[0].Value.Uint64(), debug.SetMemoryLimit(-1))
	// It stops the program for a moment, so that small changes are not worth it.
	if apart := percent - c.percent; apart < -usual/10 || apart > usual/10 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percent returns GOGC for a heap of which so many bytes are in use.
func percent(live uint64, limit int64) int {
	if live == 0 {
		return usual
	}
	return max(usual, int(min(spare, uint64(limit)/spareShare)*usual/live)) //nolint:gosec // a limit is positive, and the quotient small
}
