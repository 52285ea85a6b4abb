package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// host answers each question with a status, until some moment with 403.
type host struct {
	lock    sync.Mutex
	until   time.Time
	after   int
	asked   int
	bodies  []string
	leaking int
}

func (h *host) RoundTrip(request *http.Request) (*http.Response, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.asked++
	if request.Body != nil {
		body, _ := io.ReadAll(request.Body)
		h.bodies = append(h.bodies, string(body))
	}
	status := h.after
	if time.Now().Before(h.until) {
		status = http.StatusForbidden
	}
	h.leaking++
	return &http.Response{StatusCode: status, Body: &open{Reader: strings.NewReader("answer"), host: h}}, nil
}

// open is the body of an answer that has to be closed.
type open struct {
	io.Reader
	host *host
}

func (o *open) Close() error {
	o.host.lock.Lock()
	defer o.host.lock.Unlock()
	o.host.leaking--
	return nil
}

// ask sends a review, and returns the status of the answer.
func ask(ctx context.Context, t *testing.T, way http.RoundTripper, method string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "https://host/apis/authorization.k8s.io/v1/subjectaccessreviews", strings.NewReader("review"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := way.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// TestAskPatiently takes the permission to ask away from the server, and gives it
// back or not. The time is that of a bubble.
func TestAskPatiently(t *testing.T) {
	for _, test := range []struct {
		reason  string
		refused time.Duration
		// limit is the time of the request.
		limit  time.Duration
		after  int
		method string
		want   int
		asked  int // at most
	}{
		{"it answers", 0, time.Minute, http.StatusCreated, http.MethodPost, http.StatusCreated, 1},
		{"the binding comes back in two seconds", 2 * time.Second, time.Minute, http.StatusCreated, http.MethodPost, http.StatusCreated, 8},
		{"the binding stays away", time.Hour, time.Minute, http.StatusCreated, http.MethodPost, http.StatusForbidden, 10},
		{"the request's time is over before", 2 * time.Second, time.Second, http.StatusCreated, http.MethodPost, http.StatusForbidden, 5},
		{"the token is not valid any more", 0, time.Minute, http.StatusUnauthorized, http.MethodPost, http.StatusUnauthorized, 1},
		{"what is no review", time.Hour, time.Minute, http.StatusOK, http.MethodGet, http.StatusForbidden, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &host{until: time.Now().Add(test.refused), after: test.after}
			ctx, cancel := context.WithTimeout(t.Context(), test.limit)
			defer cancel()
			if got := ask(ctx, t, askPatiently(h), test.method); got != test.want {
				t.Errorf("%s: status %d", test.reason, got)
			}
			if h.asked > test.asked || h.leaking != 0 {
				t.Errorf("%s: asked %d times, and %d answers are left open", test.reason, h.asked, h.leaking)
			}
			for _, body := range h.bodies {
				if body != "review" {
					t.Errorf("%s: it was asked %q", test.reason, body)
				}
			}
		})
	}
}

// TestAHostThatGoesOnToRefuse asks for a minute. It is asked no more often than that
// once the patience is over, and with patience again once it has answered.
func TestAHostThatGoesOnToRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{until: time.Now().Add(time.Hour), after: http.StatusCreated}
		way := askPatiently(h)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { ask(t.Context(), t, way, http.MethodPost) })
		}
		all.Wait()
		if h.asked > 10*10 {
			t.Errorf("ten requests asked %d times", h.asked)
		}
		before := h.asked
		for range 10 {
			ask(t.Context(), t, way, http.MethodPost)
		}
		if h.asked != before+10 {
			t.Errorf("ten requests more asked %d times", h.asked-before)
		}
		h.until = time.Now()
		if got := ask(t.Context(), t, way, http.MethodPost); got != http.StatusCreated {
			t.Errorf("status %d when it answers again", got)
		}
		h.until = time.Now().Add(time.Second)
		if got := ask(t.Context(), t, way, http.MethodPost); got != http.StatusCreated {
			t.Errorf("status %d of a second outage", got)
		}
		if utilnet.CloseIdleConnectionsFor(way); h.leaking != 0 {
			t.Errorf("%d answers are left open", h.leaking)
		}
	})
}
