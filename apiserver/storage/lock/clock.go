package lock

import "time"

// reading is what both clocks of the machine show at a moment.
type reading struct {
	// wall runs on while the machine is suspended, and may be set to another time.
	wall time.Time
	// running is how long the program has run. It is never set, and stands still while
	// the machine is suspended.
	running time.Duration
}

var started = time.Now()

func read() reading {
	now := time.Now()
	return reading{wall: now.Round(0), running: now.Sub(started)}
}

// within reports whether less than a time has passed until a later reading, by
// both clocks. A wall clock that was set back says nothing about how much has
// passed, so that it may have been more.
func (r reading) within(d time.Duration, later reading) bool {
	wall := later.wall.Sub(r.wall)
	return wall >= 0 && wall < d && later.running-r.running < d
}
