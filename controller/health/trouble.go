package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// persistent is how many attempts in a row must fail before that is told: one may fail
// while a server of the registry is replaced.
const persistent = 3

// Trouble notes when clusters could not be listed or watched: what others reported
// meanwhile was not seen. Other requests say nothing of that. Wrap is for the
// registry's rest.Config.
type Trouble struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	last     time.Time
	failures int
	why      error
}

// NewTrouble returns one that has noted none.
func NewTrouble(c clock.PassiveClock) *Trouble { return &Trouble{clock: c} }

// Last returns when a list or watch last failed; zero for never.
func (t *Trouble) Last() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Lasting returns why the last few lists and watches all failed; nil when they did not.
func (t *Trouble) Lasting() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures < persistent {
		return nil
	}
	return t.why
}

// Wrap returns a transport that notes failures of another.
func (t *Trouble) Wrap(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := transport.RoundTrip(r)
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/clusters") && !errors.Is(err, context.Canceled) {
			t.note(response, err)
		}
		return response, err
	})
}

func (t *Trouble) note(response *http.Response, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.why = err
	case response.StatusCode == http.StatusGone: // begin with a list again, which misses nothing
		return
	case response.StatusCode >= http.StatusBadRequest:
		t.why = fmt.Errorf("the registry answers %d", response.StatusCode)
	default:
		t.failures, t.why = 0, nil
		return
	}
	t.last = t.clock.Now()
	t.failures++
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
