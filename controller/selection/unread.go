package selection

import (
	"errors"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// unread notes that objects could not be listed or watched.
type unread struct {
	mu  sync.Mutex
	at  time.Time
	err error
	// version is the newest that was read before.
	version string
}

// note notes an error, and the newest version that was read so far.
func (u *unread) note(now time.Time, version string, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // watches end, and begin again
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at, u.version, u.err = now, version, err
}

// lasting returns why objects can't be read, if it was tried in vain in the last minute and
// nothing newer was read since. Attempts come about as often.
func (u *unread) lasting(now time.Time, version string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil || version != u.version || now.Sub(u.at) > time.Minute {
		return nil
	}
	return u.err
}
