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
	// at is when that list began; zero for never.
	at time.Time
	// beats are they, by name.
	beats map[string]beat
	// failures counts attempts that failed since, and why the last one did.
	failures int
	why      error
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
	if apierrors.IsNotFound(err) {
		err = nil // a server that has none: it is older
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.judge()
	if err != nil {
		c.heard.failures++
		c.heard.why = err
		return err
	}
	for name, of := range beats {
		if s := c.states[clusters[name]]; s != nil && string(s.uid) == of.cluster && c.heard.beats[name] != of {
			s.sign = now
		}
	}
	c.heard = heard{at: now, beats: beats}
	return nil
}

// silence returns how long no reporter of a cluster is known to have had a sign of life: since
// a moment, until heartbeats were last listed. What came after that is not known yet. The
// caller holds the lock.
func (c *Controller) silence(since time.Time) time.Duration {
	until := c.Clock.Now()
	if c.Heartbeats != nil {
		until = c.heard.at
	}
	return max(0, until.Sub(since))
}

// unheard says why the silence of clusters is not known; "" when it is.
func (h heard) unheard() string {
	if h.failures < persistent {
		return ""
	}
	return fmt.Sprintf("Heartbeats of clusters can't be listed, %d times in a row, so that clusters that miss theirs are not noticed: %v", persistent, h.why)
}
