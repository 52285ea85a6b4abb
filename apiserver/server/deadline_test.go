package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
)

// TestAnswerInTime compares what a handler has of a request's time with the time
// that the request has.
func TestAnswerInTime(t *testing.T) {
	var until time.Time
	var limited bool
	config := &genericserver.Config{BuildHandlerChainFunc: func(handler http.Handler, _ *genericserver.Config) http.Handler { return handler }}
	answerInTime(config)
	chain := config.BuildHandlerChainFunc(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		until, limited = r.Context().Deadline()
	}), config)

	for name, test := range map[string]struct {
		method     string
		left       time.Duration // 0: unlimited
		least, max time.Duration // for the answer
	}{
		"write":             {http.MethodPost, time.Hour, time.Second, time.Second},
		"write, soon over":  {http.MethodPatch, time.Second, 1, time.Second / 10},
		"write, over":       {http.MethodDelete, -time.Hour, 0, 0},
		"read":              {http.MethodGet, time.Hour, 0, 0},
		"without a timeout": {http.MethodPost, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var deadline time.Time
			if test.left != 0 {
				deadline = time.Now().Add(test.left)
				ctx, cancel = context.WithDeadline(ctx, deadline)
				defer cancel()
			}
			chain.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, test.method, "/", nil))
			if limited != (test.left != 0) {
				t.Fatalf("limited: %t", limited)
			}
			if kept := deadline.Sub(until); limited && (kept < test.least || kept > test.max) {
				t.Errorf("%s are left for the answer, want %s to %s", kept, test.least, test.max)
			}
		})
	}
}
