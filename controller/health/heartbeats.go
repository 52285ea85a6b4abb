package health

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// heard is what was found when heartbeats were last listed.
type heard struct {
	// now is the time since the last list that failed, and before that until it did: in
	// between, reporters could not be heard, and may not have been able to write.
	now, before stretch
	// beats are they, by name, when a list last succeeded: then served is true.
	beats  map[string]beat
	served bool
	// failures counts attempts that failed since, and why the last one did.
	failures int
	why      error
}

// stretch is a time in which every list succeeded: from the last failure before, until the
// last of them began, which is zero for none.
type stretch struct{ from, until time.Time }

// without returns how long there was no sign of life in the stretch.
func (s stretch) without(since time.Time) time.Duration {
	if s.from.After(since) {
		since = s.from
	}
	return s.until.Sub(since)
}

// fail notes a list that failed, and ends a stretch. A server that has no heartbeats, of
// several, ends none: others are written to meanwhile.
func (h *heard) fail(at time.Time, why error) {
	h.failures++
	h.why = why
	if apierrors.IsNotFound(why) {
		return
	}
	if !h.now.until.IsZero() {
		h.before = h.now
	}
	h.now = stretch{from: at}
}

// beat is what tells a heartbeat from the one before.
type beat struct{ uid, cluster, renewed string }

// listen follows heartbeats until ctx ends.
func (c *Controller) listen(ctx context.Context) {
	for {
		if err := c.hear(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Heartbeats could not be listed")
		}
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(c.Period):
		}
	}
}

// hear lists heartbeats once. One that was renewed since the last time is a sign of life; when
// that was counts by the clock of this process, which is the one that measures the silence.
func (c *Controller) hear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(c.Period, time.Minute))
	defer cancel()
	now, beats := c.Clock.Now(), map[string]beat{}
	clusters := map[string]string{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.Heartbeats.List(ctx, options)
	})
	pages.PageBufferSize = 1
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		h := object.(*v1beta1.ClusterHeartbeat)
		beats[h.Name] = beat{string(h.UID), string(h.ClusterUID), h.RenewTime.UTC().Format(time.RFC3339)}
		clusters[h.Name] = h.ClusterName
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.judge()
	switch {
	case err == nil:
		c.heard.served = true
	case !c.heard.served && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)):
		// A server that has none: it is older, and authorization may come first.
	default:
		c.heard.fail(c.Clock.Now(), err)
		return err
	}
	for name, of := range beats {
		if s := c.states[clusters[name]]; s != nil && string(s.uid) == of.cluster && c.heard.beats[name] != of {
			s.sign = now
		}
	}
	c.heard.now.until, c.heard.beats = now, beats
	c.heard.failures, c.heard.why = 0, nil
	return nil
}

// silence returns how long no reporter of a cluster is known to have had a sign of life, since
// a moment: until heartbeats were last listed, and without a time in which they could not be.
// The caller holds the lock.
func (c *Controller) silence(since time.Time) time.Duration {
	if c.Heartbeats == nil {
		return c.Clock.Since(since)
	}
	return max(0, c.heard.now.without(since), c.heard.before.without(since))
}

// unheard says why the silence of clusters is not known; "" when it is.
func (h heard) unheard() string {
	if h.failures < persistent {
		return ""
	}
	return fmt.Sprintf("Heartbeats of clusters can't be listed, %d times in a row, so that clusters that miss theirs are not noticed: %v", persistent, h.why)
}
