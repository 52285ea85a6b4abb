package server

import (
	"context"
	"net/http"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
)

// answerInTime ends the work on a write a little before the request's time is
// over, when its client is told that it took too long. k8s.io/apiserver says so
// at the very end, and if the handler has begun to say it at that moment, cuts
// the connection instead, which leaves the client without a word about a write
// whose outcome no one knows.
func answerInTime(config *genericserver.Config) {
	inside(config, func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			deadline, limited := r.Context().Deadline()
			// Handlers of reads don't turn the end of their time into an answer.
			if !limited || r.Method == http.MethodGet || r.Method == http.MethodHead {
				handler.ServeHTTP(w, r)
				return
			}
			ctx, cancel := context.WithDeadline(r.Context(), deadline.Add(-timeToAnswer(time.Until(deadline))))
			defer cancel()
			handler.ServeHTTP(w, r.WithContext(ctx))
		})
	})
}

// timeToAnswer is how much of what is left of a request's time is for its answer.
func timeToAnswer(left time.Duration) time.Duration {
	return min(left/10, time.Second)
}
