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
	// from is when the first list succeeded after the last that failed: before, reporters could
	// not be heard, and may not have been able to write. until is when the last of the lists
	// since began, zero for none.
	from, until time.Time
	// beats are they, by name, when a list last succeeded: then served is true.
	beats  map[string]beat
	served bool
	// failures counts attempts that failed since, and why the last one did.
	failures int
	why      error
}

// fail notes a list that failed. One of a server that has no heartbeats, of several, is no time
// in which no one is heard: others are written to.
func (h *heard) fail(why error) {
	h.failures++
	h.why = why
	if !apierrors.IsNotFound(why) {
		h.until = time.Time{}
	}
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
		if c.heard.until.IsZero() {
			klog.FromContext(ctx).Info("Heartbeats are not listed, and entries and probes alone count", "reason", err.Error())
		}
		// A server that has none: it is older, and authorization may come first.
	default:
		c.heard.fail(err)
		return err
	}
	for name, of := range beats {
		if s := c.states[clusters[name]]; s != nil && string(s.uid) == of.cluster && c.heard.beats[name] != of {
			s.sign = now
		}
	}
	if c.heard.until.IsZero() {
		c.heard.from = now
	}
	c.heard.until, c.heard.beats = now, beats
	c.heard.failures, c.heard.why = 0, nil
	return nil
}

// silence returns how long no reporter of a cluster is known to have had a sign of life, since
// a moment: until heartbeats were last listed, and without a time in which they could not be. It
// gets no shorter until there is a sign. The caller holds the lock.
func (c *Controller) silence(s *state, since time.Time) time.Duration {
	if !s.of.Equal(s.sign) {
		s.of, s.silence = s.sign, 0
	}
	until := c.Clock.Now()
	if c.Heartbeats != nil {
		until = c.heard.until
		if c.heard.from.After(since) {
			since = c.heard.from
		}
	}
	s.silence = max(s.silence, until.Sub(since))
	return s.silence
}

// unheard says why the silence of clusters is not known; "" when it is.
func (h heard) unheard() string {
	if h.failures < persistent {
		return ""
	}
	return fmt.Sprintf("Heartbeats of clusters can't be listed, %d times in a row, so that clusters that miss theirs are not noticed: %v", persistent, h.why)
}
