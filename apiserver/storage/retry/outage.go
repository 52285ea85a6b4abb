package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// patience is for how long etcd may fail to answer before requests fail of it. Elections
	// take less, and so does the loss of a proposal, which etcd notices after seven seconds.
	patience = 20 * time.Second
	// trial is how long a request waits for etcd after that.
	trial = 2 * time.Second
	// memory is for how long it is known that etcd does not answer, while nothing asks it.
	memory = 2 * time.Minute
	// filling is for how long a request waits for a watch cache that is being filled.
	filling = 10 * time.Second
	// pause is after how many seconds a client that was refused asks again.
	pause = 5
)

// outage is what is known of whether etcd answers, by all requests of a server.
type outage struct {
	lock sync.Mutex
	// since is when etcd began not to answer, zero when it does. Who comes later waits no
	// longer than the first one.
	since time.Time
	// last is when that was last found. Long after, nothing is known.
	last time.Time
	// heard is when etcd answered last.
	heard time.Time
}

// answered notes that etcd has answered.
func (o *outage) answered() {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.since, o.heard = time.Time{}, time.Now()
}

// silent notes that etcd has not answered an attempt that began at the given time. That says
// nothing where it has answered others since: a connection may hang, and the next attempt takes
// another one.
func (o *outage) silent(began time.Time) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.heard.After(began) {
		return
	}
	if !o.known() {
		o.since = began
	}
	o.last = time.Now()
}

// known reports whether it is known that etcd does not answer.
func (o *outage) known() bool { return !o.since.IsZero() && time.Since(o.last) < memory }

// lasts reports whether etcd has not answered for so long that no one is kept waiting for it.
func (o *outage) lasts() bool {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.known() && time.Since(o.since) >= patience
}

// limit bounds an attempt to read one object by what requests may still wait for etcd.
func (o *outage) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, o.left())
}

// left is for how long requests may still wait for etcd.
func (o *outage) left() time.Duration {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.known() {
		return max(trial, patience-time.Since(o.since))
	}
	return patience
}

// unavailable is the answer to a request for which etcd is needed while it does not answer.
// Nothing was written for it.
func unavailable(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("the registry's etcd does not answer (%v): nothing was read or written; the request succeeds when etcd is back, try again", err),
		Details: &metav1.StatusDetails{RetryAfterSeconds: pause},
	}}
}

// reachable returns an error when etcd has not answered for long, and does not answer now: then
// no write begins whose outcome no one would know.
func (s *store) reachable(ctx context.Context, key string) error {
	if !s.outage.lasts() {
		return nil
	}
	return s.silent(ctx, key)
}

// silent returns an error when etcd does not answer a read of one object, for as long as requests
// may wait for it.
func (s *store) silent(ctx context.Context, key string) error {
	if err := s.Get(ctx, key, storage.GetOptions{IgnoreNotFound: true}, s.newFunc()); apierrors.IsServiceUnavailable(err) {
		return err
	}
	return nil // whatever it says, etcd answers
}

// errSilent is the error of a read that etcd has not answered while the request has time left.
var errSilent = errors.New("no answer in time")

// ended returns the error of an attempt to read, which is errSilent when the attempt's time ended
// before the request's.
func ended(request, attempt context.Context, err error) error {
	if err != nil && attempt.Err() != nil && request.Err() == nil {
		return errSilent
	}
	return err
}
