package server

import (
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
)

const (
	// mostWatches is how many watches a user may have open at a server.
	mostWatches = 1000
	// pauseOfWatches is after how many seconds one who has so many may try again.
	pauseOfWatches = 10
)

// boundWatches bounds the open watches of each user. Each takes memory for as long as it lasts,
// and a part of each write; the limits on requests in flight count it only until it has begun.
func boundWatches(config *genericserver.Config) {
	if config.MaxRequestsInFlight == 0 {
		return
	}
	inside(config, func(handler http.Handler) http.Handler {
		open := openWatches{of: map[string]int{}}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, known := request.RequestInfoFrom(r.Context())
			who, someone := request.UserFrom(r.Context())
			if !known || !someone || !info.IsResourceRequest || info.Verb != "watch" || isOwn(who) {
				handler.ServeHTTP(w, r)
				return
			}
			if !open.begin(who.GetName()) {
				refuse(w, r, info, apierrors.NewTooManyRequests(fmt.Sprintf("user %q has %d watches open at this server, which is the most: end some, or give its clients names of their own", who.GetName(), mostWatches), pauseOfWatches))
				return
			}
			defer open.end(who.GetName())
			handler.ServeHTTP(w, r)
		})
	})
}

// openWatches counts the watches of each user.
type openWatches struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts one more, unless there are too many.
func (o *openWatches) begin(user string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[user] >= mostWatches {
		return false
	}
	o.of[user]++
	return true
}

// end counts one less.
func (o *openWatches) end(user string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[user]--; o.of[user] == 0 {
		delete(o.of, user)
	}
}
