package health

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestTrouble(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(100, 0))
	const clusters = "/apis/clusterregistry.k8s.io/v1beta1/clusters"
	for _, test := range []struct {
		reason, method, url string
		status              int
		err                 error
		noted               bool
	}{
		{"an answer", http.MethodGet, clusters, http.StatusOK, nil, false},
		{"too old a watch", http.MethodGet, clusters + "?watch=true", http.StatusGone, nil, false},
		{"no right to watch", http.MethodGet, clusters + "?watch=true", http.StatusForbidden, nil, true},
		{"an error of the server", http.MethodGet, clusters, http.StatusServiceUnavailable, nil, true},
		{"no connection", http.MethodGet, clusters, 0, errors.New("refused"), true},
		{"this side gave up", http.MethodGet, clusters, 0, context.Canceled, false},
		{"a report that is not taken", http.MethodPatch, clusters + "/east/status", http.StatusServiceUnavailable, nil, false},
		{"one cluster", http.MethodGet, clusters + "/east", http.StatusServiceUnavailable, nil, false},
	} {
		trouble, failing := NewTrouble(fake), true
		transport := trouble.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			if !failing {
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: test.status, Body: http.NoBody}, test.err
		}))
		request := httptest.NewRequestWithContext(t.Context(), test.method, test.url, nil)
		ask := func() {
			response, err := transport.RoundTrip(request)
			_ = response.Body.Close()
			if failing && !errors.Is(err, test.err) {
				t.Errorf("%s: %v", test.reason, err)
			}
		}
		ask()
		ask()
		if trouble.Last().Equal(fake.Now()) != test.noted || trouble.Lasting() != nil {
			t.Errorf("%s: noted %v, %v", test.reason, trouble.Last(), trouble.Lasting())
		}
		ask()
		if (trouble.Lasting() != nil) != test.noted {
			t.Errorf("%s, three times: %v", test.reason, trouble.Lasting())
		}
		failing = false
		if ask(); test.noted && trouble.Lasting() != nil {
			t.Errorf("%s, and then an answer: %v", test.reason, trouble.Lasting())
		}
	}
}
