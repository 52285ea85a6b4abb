package health

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Trouble notes when requests to a registry last failed for its own reasons. Wrap is
// for the registry's rest.Config.
type Trouble struct {
	clock clock.Clock
	last  atomic.Pointer[time.Time]
}

// NewTrouble returns one that has noted none.
func NewTrouble(c clock.Clock) *Trouble { return &Trouble{clock: c} }

// Last returns when a request last failed; zero for never.
func (t *Trouble) Last() time.Time {
	if last := t.last.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// Wrap returns a transport that notes failures of another.
func (t *Trouble) Wrap(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := transport.RoundTrip(r)
		if err != nil && !errors.Is(err, context.Canceled) || err == nil && response.StatusCode >= http.StatusInternalServerError {
			now := t.clock.Now()
			t.last.Store(&now)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
