package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

// beats are the heartbeats of a registry.
type beats struct {
	typed.ClusterHeartbeatInterface
	items []v1beta1.ClusterHeartbeat
	err   error
}

func (b *beats) List(context.Context, metav1.ListOptions) (*v1beta1.ClusterHeartbeatList, error) {
	return &v1beta1.ClusterHeartbeatList{Items: b.items}, b.err
}

// renew has an agent write its heartbeat of a cluster again, by a clock that is wrong.
func (b *beats) renew(of types.UID) {
	at := metav1.NewTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	if len(b.items) > 0 {
		at = metav1.NewTime(b.items[0].RenewTime.Add(time.Second))
	}
	b.items = []v1beta1.ClusterHeartbeat{{ObjectMeta: metav1.ObjectMeta{Name: "east.agent", UID: "beat"}, ClusterName: "east", ClusterUID: of, Reporter: "agent", RenewTime: at}}
}

// TestHeartbeatsAreHeard has a cluster that only an agent can report of, which writes heartbeats.
func TestHeartbeatsAreHeard(t *testing.T) {
	east := entry("east")
	east.Spec.Heartbeat = &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 1}
	east.Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: "agent", Conditions: []metav1.Condition{{Type: Available, Status: metav1.ConditionTrue, Reason: "Up"}}}}}
	b, registry := newBench(t, east), &beats{}
	b.Heartbeats = registry
	b.answer(refused, "east")
	minute := func(when, want string) {
		t.Helper()
		if err := b.hear(t.Context()); !errors.Is(err, registry.err) {
			t.Fatal(err)
		}
		b.check("east")
		if got := b.shown("east", Available); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	for range 5 {
		registry.renew(east.UID)
		minute("while the agent writes", "True Reported")
	}
	minute("after one that is missing", "True Reported")
	minute("after two, of which one is tolerated", "True Reported")
	minute("after three", "Unknown HeartbeatMissed")
	registry.renew("another")
	minute("with that of another cluster of the name", "Unknown HeartbeatMissed")
	registry.renew(east.UID)
	minute("with a sign of life", "True Reported")
	b.said = nil
	registry.err = errors.New("no")
	for range 10 {
		minute("while heartbeats can't be listed", "True Reported")
	}
	if !slices.Equal(b.said, []contract.FunctionState{contract.FunctionFailing}) {
		t.Errorf("while heartbeats can't be listed, it says %v", b.said)
	}
	registry.err = nil
	minute("once they can, and no agent could write yet", "True Reported")
	if !slices.Equal(b.said, []contract.FunctionState{contract.FunctionFailing, contract.FunctionRunning}) {
		t.Errorf("in the end, it says %v", b.said)
	}
	for range 2 {
		minute("within what is tolerated since they can", "True Reported")
	}
	minute("after that", "Unknown HeartbeatMissed")
	for _, registry.err = range []error{registry.err, errors.New("no"), nil, errors.New("no"), nil} {
		minute(fmt.Sprintf("with a list that ends with %v", registry.err), "Unknown HeartbeatMissed")
	}
}

// TestOlderServers: of a registry whose servers have no heartbeats, all is as without; of one
// where some have, what the others say forgets nothing.
func TestOlderServers(t *testing.T) {
	resource := v1beta1.SchemeGroupVersion.WithResource("clusterheartbeats").GroupResource()
	none := apierrors.NewNotFound(resource, "")
	for _, before := range []error{none, apierrors.NewForbidden(resource, "", nil)} {
		east := entry("east")
		east.Spec.Heartbeat = &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 1}
		east.Status = &v1beta1.ClusterStatus{Reporters: []v1beta1.Reporter{{Name: "agent", Conditions: []metav1.Condition{{Type: Available, Status: metav1.ConditionTrue, Reason: "Up"}}}}}
		b, registry := newBench(t, east), &beats{err: before}
		b.Heartbeats = registry
		b.answer(refused, "east")
		minutes := func(want string, answers ...error) {
			t.Helper()
			for _, registry.err = range answers {
				_ = b.hear(t.Context())
				b.check("east")
			}
			if got := b.shown("east", Available); got != want {
				t.Errorf("after %v: %s, want %s", answers, got, want)
			}
		}
		minutes("True Reported", before, before, before)
		minutes("Unknown HeartbeatMissed", before)
		if len(b.said) > 1 || len(b.said) == 1 && b.said[0] != contract.FunctionRunning {
			t.Errorf("after %v: it says %v", before, b.said)
		}
		registry.renew(east.UID)
		minutes("True Reported", nil)
		minutes("Unknown HeartbeatMissed", none, nil, none, nil)
		b.said = nil
		minutes("Unknown HeartbeatMissed", before, before, before)
		if !slices.Equal(b.said, []contract.FunctionState{contract.FunctionFailing}) {
			t.Errorf("after %v again: it says %v", before, b.said)
		}
	}
}

// TestHearingEnds gives up a list that hangs, and counts it as one that failed.
func TestHearingEnds(t *testing.T) {
	b := newBench(t)
	b.Heartbeats = deaf{}
	if err := b.hear(t.Context()); !errors.Is(err, errHung) {
		t.Error(err)
	}
}

// deaf never answers, but to who does not wait for ever.
type deaf struct {
	typed.ClusterHeartbeatInterface
}

var errHung = errors.New("hung")

func (deaf) List(ctx context.Context, _ metav1.ListOptions) (*v1beta1.ClusterHeartbeatList, error) {
	if _, ends := ctx.Deadline(); ends {
		return nil, errHung
	}
	return &v1beta1.ClusterHeartbeatList{}, nil
}

// TestListening lists heartbeats once in a period.
func TestListening(t *testing.T) {
	b := newBench(t, entry("east"))
	registry := &beats{}
	registry.renew("uid-of-east")
	b.Heartbeats = registry
	go b.listen(t.Context())
	heard := func(at time.Time) func() bool {
		return func() bool {
			b.Controller.mu.Lock()
			defer b.Controller.mu.Unlock()
			return b.heard.until.Equal(at)
		}
	}
	eventually(t, "the first list", heard(b.clock.Now()))
	eventually(t, "the pause after it", b.clock.HasWaiters)
	b.clock.Step(time.Minute)
	eventually(t, "the second list", heard(b.clock.Now()))
}
