package retry

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// reason is why a call is repeated. An error without one is an answer.
type reason string

const (
	// unapplied: nothing was written, and nothing will be.
	unapplied reason = "Unapplied"
	// unknown: a write may have been applied, or may still be.
	unknown reason = "Unknown"
)

var retries = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "clusterregistry_storage_retries_total",
	Help:           "Calls that etcd could not serve and that were repeated, by operation and by what was known of their outcome.",
	StabilityLevel: metrics.ALPHA,
}, []string{"operation", "reason"})

func init() { legacyregistry.MustRegister(retries) }

// Errors of raft that etcd passes on as a text only.
const (
	// dropped is its ErrProposalDropped: there was no leader to take it.
	dropped = "raft proposal dropped"
	// stopped is its ErrStopped, from a member that is being removed or shut down: the
	// proposal may have left it already.
	stopped = "raft: stopped"
)

// classify returns why a call that a storage ended with err is worth another
// attempt.
func classify(err error) reason {
	if err == nil {
		return ""
	}
	// So says a watch cache that is being filled again, since its watch of etcd broke.
	if apierrors.IsTooManyRequests(err) || errors.Is(err, errSilent) {
		return unapplied
	}
	// The etcd client turns the errors it knows into its own type.
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		switch {
		case known == rpctypes.ErrTooManyRequests: //nolint:errorlint // known is what was found in err
			return unapplied
		case known.Code() == codes.Unavailable:
			return unknown
		}
		return ""
	}
	s, ok := status.FromError(err)
	switch {
	case !ok:
		return ""
	case s.Code() == codes.Unknown && s.Message() == dropped:
		return unapplied
	case s.Code() == codes.Unavailable, s.Code() == codes.Unknown && s.Message() == stopped:
		return unknown
	}
	return ""
}

// call is one call with all its attempts.
type call struct {
	operation, key string
	outage         *outage
	// cached says that a watch cache may answer, whatever etcd does.
	cached bool
	// proposed says that the attempt under way may have written.
	proposed bool
	// open is why it is not known whether an attempt was applied; nil when none
	// was or all have been found out about.
	open error
	// refused is the error of what the attempt under way asked on the caller's
	// behalf, such as admission. It may look like one of the storage's.
	refused error
}

// ask returns what the caller's own part in an attempt says, and remembers that
// it was not the storage who said so.
func (c *call) ask(err error) error {
	c.refused = err
	return err
}

// why returns why an attempt that gave err is worth another one.
func (c *call) why(err error) reason {
	if c.refused != nil && errors.Is(err, c.refused) {
		return ""
	}
	why := classify(err)
	if why == unknown && !c.proposed {
		return unapplied
	}
	return why
}

// persist repeats attempt until it succeeds or fails with an answer, or the
// context ends, or etcd has not answered anyone for too long, or a watch cache
// takes too long to be filled. A failure is no answer while an attempt is open,
// for that may have been applied.
func (c *call) persist(ctx context.Context, attempt func() error) error {
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 500 * time.Millisecond}
	start := time.Now()
	for {
		c.proposed, c.refused = false, nil
		began := time.Now()
		err := attempt()
		why := c.why(err)
		switch {
		case apierrors.IsTooManyRequests(err): // of a watch cache, which takes its time to be filled
		case why != "":
			c.outage.silent(began)
		case !c.cached && answer(err):
			c.outage.answered()
		}
		switch {
		case err == nil:
			return nil
		case why == unknown:
			c.open = err
		case why != "" && c.open == nil && c.outage.lasts():
			return unavailable(err)
		case c.open == nil && apierrors.IsTooManyRequests(err) && time.Since(start) >= filling:
			return err
		}
		if why == "" || !sleep(ctx, backoff.Step()) {
			if c.open != nil {
				return c.open
			}
			return err
		}
		retries.WithLabelValues(c.operation, string(why)).Inc()
		klog.V(2).InfoS("Retrying a call that etcd could not serve", "operation", c.operation, "key", c.key, "reason", string(why), "err", err)
	}
}

// answer reports whether etcd has answered an attempt that is not worth another one.
func answer(err error) bool {
	var said *storage.StorageError
	return err == nil || errors.As(err, &said)
}

// sleep waits and returns whether the context is still valid.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
