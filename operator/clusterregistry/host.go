package clusterregistry

import (
	"sync"
	"time"
)

const (
	// hostNewer and hostOlder are for how long the host must have given the same
	// answer before servers are made for that version. Of a control plane that is
	// upgraded one API server answers so and the next one otherwise, for an hour
	// perhaps, and it is going up.
	hostNewer = 10 * time.Minute
	hostOlder = time.Hour
)

// answers is what the host says of its minor version, such as v1.37, and since
// when it says nothing else. The zero value is ready to use.
type answers struct {
	lock  sync.Mutex
	minor string
	since time.Time
}

// heard notes an answer and returns since when all were the same.
func (a *answers) heard(minor string, now time.Time) time.Time {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.minor != minor {
		a.minor, a.since = minor, now
	}
	return a.since
}
