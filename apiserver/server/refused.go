package server

import (
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// outage is for how long the host may refuse to answer the server's reviews before
// requests fail of it: the operator restores a binding that was deleted in a second
// or two.
const outage = 5 * time.Second

// askPatiently repeats questions that the host refuses to be asked, as it does while
// the server's binding to system:auth-delegator is missing: reviews of who someone
// is and what they may do. "Denied" is an answer, not a refusal. k8s.io/apiserver
// repeats what fails otherwise; this does it below, in the way to the host.
func askPatiently(next http.RoundTripper) http.RoundTripper { return &patient{next: next} }

type patient struct {
	next http.RoundTripper

	lock sync.Mutex
	// since is when the host began to refuse, zero when it answers. Who comes later
	// waits no longer than the first one: a host that keeps refusing is asked once
	// for each request.
	since time.Time
}

// RoundTrip asks, and asks again while it is worth it and the request has time.
func (p *patient) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	pause := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: time.Second}
	for {
		response, err := p.next.RoundTrip(request)
		if err != nil || request.Method != http.MethodPost || request.GetBody == nil || !p.again(response.StatusCode, began) {
			return response, err
		}
		body, err := request.GetBody()
		if err != nil {
			return response, nil //nolint:nilerr // the host's answer is better than none
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-request.Context().Done():
			timer.Stop()
			return response, nil
		case <-timer.C:
		}
		// What was read to its end leaves the connection to others.
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
		_ = response.Body.Close()
		request = request.Clone(request.Context())
		request.Body = body
	}
}

// again notes what the host answered, and reports whether to ask once more on behalf of
// a request that began at the given time.
func (p *patient) again(status int, began time.Time) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch {
	case status < http.StatusMultipleChoices:
		p.since = time.Time{}
		return false
	case status != http.StatusForbidden:
		return false
	case p.since.IsZero():
		p.since = time.Now()
	}
	return time.Since(p.since) < outage && time.Since(began) < outage
}

// WrappedRoundTripper returns the one below.
func (p *patient) WrappedRoundTripper() http.RoundTripper { return p.next }
