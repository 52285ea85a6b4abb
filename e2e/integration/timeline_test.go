package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// timeline is all that a watch of a registry's clusters has shown.
type timeline struct {
	mu    sync.Mutex
	shown []sighting
	// failed is why the watch has ended before the test.
	failed error
}

// sighting is a version of a cluster, and when it was seen.
type sighting struct {
	at      time.Time
	cluster *v1beta1.Cluster
}

// watchClusters records until the test ends.
func watchClusters(t *testing.T, clusters typed.ClusterInterface) *timeline {
	t.Helper()
	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := &timeline{}
	for i := range list.Items {
		l.shown = append(l.shown, sighting{time.Now(), &list.Items[i]})
	}
	watch, err := clusters.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	go func() {
		for event := range watch.ResultChan() {
			if t.Context().Err() != nil {
				return
			}
			l.mu.Lock()
			if cluster, ok := event.Object.(*v1beta1.Cluster); ok {
				l.shown = append(l.shown, sighting{time.Now(), cluster})
			} else {
				l.failed = fmt.Errorf("the watch got %s %v", event.Type, event.Object)
			}
			l.mu.Unlock()
		}
	}()
	return l
}

// of returns what was seen of a cluster since a time, in order.
func (l *timeline) of(t *testing.T, name string, since time.Time) []sighting {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		t.Fatal(l.failed)
	}
	var out []sighting
	for _, s := range l.shown {
		if s.cluster.Name == name && s.at.After(since) {
			out = append(out, s)
		}
	}
	return out
}

// changed returns when a condition of a cluster was first seen with a status after a time.
func (l *timeline) changed(t *testing.T, name, kind string, status metav1.ConditionStatus, since time.Time) time.Time {
	t.Helper()
	var at time.Time
	framework.Eventually(t, fmt.Sprintf("a watch to tell that %s of %s is %s", kind, name, status), func(context.Context) error {
		for _, s := range l.of(t, name, since) {
			if conditionOf(s.cluster, kind).Status == status {
				at = s.at
				return nil
			}
		}
		return fmt.Errorf("since %s, it was not", since)
	})
	return at
}

// expectQuiet fails the test when something was written of a cluster since a time.
func (l *timeline) expectQuiet(t *testing.T, since time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, s := range l.of(t, name, since) {
			t.Errorf("%s was written %s after nothing had happened to it: %s", name, s.at.Sub(since).Round(time.Millisecond), summary(s.cluster))
		}
	}
}

// summary is what the conditions of a cluster say, in one line.
func summary(cluster *v1beta1.Cluster) string {
	var out []string
	for _, kind := range []string{"Reachable", "ControlPlaneHealthy", "Available", "IdentityVerified"} {
		c := conditionOf(cluster, kind)
		out = append(out, strings.TrimSpace(string(c.Status)+" "+c.Reason))
	}
	return strings.Join(out, ", ")
}

// check compares all versions of a cluster that were seen with the ones before: a
// condition's time is that of the change of its status, and never another one.
func (l *timeline) check(t *testing.T, name string) {
	t.Helper()
	seen := l.of(t, name, time.Time{})
	for i, now := range seen {
		if now.cluster.Status == nil {
			continue
		}
		for _, c := range now.cluster.Status.Conditions {
			if c.ObservedGeneration < 1 || c.ObservedGeneration > now.cluster.Generation {
				t.Errorf("%s of %s was observed of generation %d, and the cluster has %d", c.Type, name, c.ObservedGeneration, now.cluster.Generation)
			}
			if i == 0 || seen[i-1].cluster.Status == nil {
				continue
			}
			before := meta.FindStatusCondition(seen[i-1].cluster.Status.Conditions, c.Type)
			switch {
			case before == nil:
				continue
			case before.Status == c.Status && !before.LastTransitionTime.Equal(&c.LastTransitionTime):
				t.Errorf("%s of %s stays %s, and its time went from %s to %s", c.Type, name, c.Status, before.LastTransitionTime, c.LastTransitionTime)
			case before.Status != c.Status && !changedBetween(before, &c, seen[i-1].at, now.at):
				t.Errorf("%s of %s turned %s with the time %s, and was seen at %s", c.Type, name, c.Status, c.LastTransitionTime, now.at)
			case before.ObservedGeneration > c.ObservedGeneration:
				t.Errorf("%s of %s was observed of generation %d, and then of %d", c.Type, name, before.ObservedGeneration, c.ObservedGeneration)
			}
		}
	}
}

// changedBetween reports whether the time of a change fits when the condition was seen before
// it and after it. It does not come after the sight, and comes after the change before, whose
// time it must not have kept: only if that was seen at once may both be the same second. How
// long the sight follows the change is a matter of how busy the machine is.
func changedBetween(before, after *metav1.Condition, seenBefore, seenAfter time.Time) bool {
	last, now := before.LastTransitionTime.Time, after.LastTransitionTime.Time
	switch {
	case now.After(seenAfter), now.Before(last):
		return false
	case now.Equal(last):
		return seenBefore.Sub(last) < 2*time.Second
	}
	return true
}

// story is how the conditions of a cluster went, for a test that failed.
func (l *timeline) story(t *testing.T, name string) string {
	t.Helper()
	var out strings.Builder
	for _, s := range l.of(t, name, time.Time{}) {
		_, _ = fmt.Fprintf(&out, "%s %s generation %d: %s\n", s.at.Format(time.TimeOnly), name, s.cluster.Generation, summary(s.cluster))
	}
	return out.String()
}

// sleep waits for a time in which nothing may happen.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
