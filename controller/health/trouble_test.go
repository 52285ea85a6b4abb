package health

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestTrouble(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(100, 0))
	for _, test := range []struct {
		reason string
		status int
		err    error
		noted  bool
	}{
		{"an answer", http.StatusOK, nil, false},
		{"a conflict is an answer", http.StatusConflict, nil, false},
		{"an error of the server", http.StatusServiceUnavailable, nil, true},
		{"no connection", 0, errors.New("refused"), true},
		{"this side gave up", 0, context.Canceled, false},
	} {
		trouble := NewTrouble(fake)
		response, err := trouble.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: test.status, Body: http.NoBody}, test.err
		})).RoundTrip(nil)
		_ = response.Body.Close()
		if !errors.Is(err, test.err) || trouble.Last().Equal(fake.Now()) != test.noted {
			t.Errorf("%s: noted %v, %v", test.reason, trouble.Last(), err)
		}
	}
}
