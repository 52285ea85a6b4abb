package feed

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/controller/export/verify"
)

const (
	// waiting is how long a request waits for what the host cluster says, and for its turn.
	waiting = 25 * time.Second
	// retryAfter is when a request without an answer is to be made again, in seconds.
	retryAfter = 10
)

// Server answers requests.
type Server struct {
	Config
	fleet       *fleet
	identity    *identity
	verifier    *verify.Verifier
	permissions *permissions
	answers     *answers
	load        load
	shown       *shown
	// kept is what the record had when it was last read or written.
	kept string
}

// ServeHTTP answers a request, or says in a sentence why not. Nothing of a request is logged.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := forms[r.URL.Path]
	held := &places{server: s}
	defer held.leave() // once all is written: until then, the answer takes memory
	answer, err := s.serve(r, in, held)
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if err != nil {
		refuse(w, err, in)
		s.Metrics.served(in, statusOf(err))
		return
	}
	header.Set("Content-Type", in.contentType)
	header.Set("Content-Length", strconv.Itoa(len(answer)))
	s.Metrics.served(in, http.StatusOK)
	_, _ = w.Write(answer) // a client that is gone needs no answer
}

// statusOf returns the status of a response without an answer.
func statusOf(err error) int {
	if why := (refusal{}); errors.As(err, &why) {
		return why.status
	}
	return http.StatusInternalServerError
}

// refuse says why there is no answer.
func refuse(w http.ResponseWriter, err error, in form) {
	status, words := statusOf(err), err.Error()
	header := w.Header()
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", strconv.Itoa(retryAfter))
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodGet+", "+http.MethodHead)
	case http.StatusInternalServerError:
		klog.ErrorS(err, "An answer could not be made", "format", in.name)
		words = "the answer could not be made"
	}
	if status < http.StatusInternalServerError {
		header.Set("Connection", "close") // anyone can be refused, and then holds none
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words + "\n"))
}

// serve returns the answer to a request:
//  1. the request is read, and refused where it can't be
//  2. the caller is known, by a token for this endpoint
//  3. there is all that is to be answered
//  4. what the caller sees of that is known
func (s *Server) serve(r *http.Request, in form, held *places) ([]byte, error) {
	if in.name == "" {
		return nil, refusal{http.StatusNotFound, "there is no such path"}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, refusal{http.StatusMethodNotAllowed, "there is nothing to write here"}
	}
	asked, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refusal{http.StatusBadRequest, err.Error()}
	}
	if !held.enter() {
		return nil, refusal{http.StatusTooManyRequests, "too many requests are answered at once"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), waiting)
	defer cancel()
	who, err := s.identity.of(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case who == nil:
		return nil, refusal{http.StatusUnauthorized, "send a bearer token of the host cluster with the audience " + s.Audience}
	}
	turn := held.of(who)
	if turn == nil {
		return nil, refusal{http.StatusTooManyRequests, "the caller makes too many requests at once"}
	}
	of, err := s.fleet.complete()
	if errors.Is(err, errNoClusters) {
		return nil, unavailable(err.Error())
	}
	if err != nil {
		// Why is for people who may look at the registry.
		return nil, unavailable("not all clusters are known at present: the condition ControllerReady of the ClusterRegistry says why")
	}
	select { // the requests of one caller ask the same, and the first of them for all
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable("too many permissions are reviewed at once")
	}
	seen, err := s.permissions.of(ctx, who, of.entries)
	<-turn
	if err != nil {
		return nil, err
	}
	s.identity.answered(who)
	answer, err := s.answer(ctx, in, of, seen, asked)
	if err == nil && !held.takes(len(answer)) {
		return nil, refusal{http.StatusTooManyRequests, "too much is answered at once"}
	}
	return answer, err
}
