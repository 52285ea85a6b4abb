package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
)

// TestShares sends requests that last through the filter that the server has in
// front, until each user is refused, and looks at who got how many.
func TestShares(t *testing.T) {
	config := &genericserver.Config{MaxRequestsInFlight: 12, MaxMutatingRequestsInFlight: 6}
	shareLimits(config)
	release, entered := make(chan struct{}), make(chan struct{})
	lasting := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	})
	filter := genericfilters.WithPriorityAndFairness(lasting, nil, config.FlowControl, nil, 0)
	ended := make(chan *httptest.ResponseRecorder)
	// begin returns nil when the request goes on, else its refusal.
	begin := func(who user.Info, info *request.RequestInfo) *httptest.ResponseRecorder {
		ctx := request.WithRequestInfo(request.WithUser(t.Context(), who), info)
		go func() {
			w := httptest.NewRecorder()
			filter.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			ended <- w
		}()
		select {
		case <-entered:
			return nil
		case w := <-ended:
			return w
		}
	}
	read := &request.RequestInfo{IsResourceRequest: true, Verb: "list", Path: "/livez"}
	write := &request.RequestInfo{IsResourceRequest: true, Verb: "create"}
	running := 0
	for _, test := range []struct {
		reason string
		who    user.Info
		info   *request.RequestInfo
		want   int // before one is refused
	}{
		{"the first user gets half", &user.DefaultInfo{Name: "ann"}, read, 6},
		{"the next one gets half of what is left", &user.DefaultInfo{Name: "bob"}, read, 3},
		{"and so on", &user.DefaultInfo{Name: "eve"}, read, 2},
		{"who has something gets no more", &user.DefaultInfo{Name: "ann"}, read, 0},
		{"there is something for whoever has nothing", &user.DefaultInfo{Name: "zoe"}, read, 1},
		{"until nothing is left", &user.DefaultInfo{Name: "max"}, read, 0},
		{"writes have a limit of their own", &user.DefaultInfo{Name: "ann"}, write, 3},
	} {
		got := 0
		for ; begin(test.who, test.info) == nil; got++ {
			running++
		}
		if got != test.want {
			t.Errorf("%s: %d, want %d", test.reason, got, test.want)
		}
	}
	for reason, test := range map[string]struct {
		who  user.Info
		info *request.RequestInfo
	}{
		"a probe":          {&user.DefaultInfo{Name: user.Anonymous}, &request.RequestInfo{Verb: "get", Path: "/livez"}},
		"another probe":    {&user.DefaultInfo{Name: "ann"}, &request.RequestInfo{Verb: "get", Path: "/readyz"}},
		"an old probe":     {&user.DefaultInfo{Name: user.Anonymous}, &request.RequestInfo{Verb: "get", Path: "/healthz"}},
		"the server's own": {&user.DefaultInfo{Name: user.APIServerUser}, read},
	} {
		if refused := begin(test.who, test.info); refused != nil {
			t.Errorf("%s: %d", reason, refused.Code)
			continue
		}
		running++
	}
	refused := begin(&user.DefaultInfo{Name: "max"}, read)
	if refused == nil || refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" {
		t.Fatalf("refused with %+v", refused)
	}
	close(release)
	for range running {
		if w := <-ended; w.Code != http.StatusOK {
			t.Errorf("a request that was let in ended with %d", w.Code)
		}
	}
	release = make(chan struct{})
	for i := range 6 {
		if begin(&user.DefaultInfo{Name: fmt.Sprint("late", i%2)}, read) != nil {
			t.Errorf("what others had is not given back: refused after %d", i)
		}
	}
	close(release)
	for range 6 {
		<-ended
	}
}

// TestSharesWithoutLimits lets everything pass when limits are off.
func TestSharesWithoutLimits(t *testing.T) {
	s := newShare(0)
	for i := range 1000 {
		if !s.enter("ann") {
			t.Fatalf("refused after %d", i)
		}
	}
}
