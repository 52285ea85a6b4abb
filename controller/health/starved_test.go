package health

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

// starved checks one cluster a few times, each a minute after the other, while no other one is.
func (b *bench) starved(name string) {
	b.t.Helper()
	for range threshold + 2 {
		b.check(name)
	}
}

func (b *bench) expectAvailable(reason string, names ...string) {
	b.t.Helper()
	for _, name := range names {
		if got := b.shown(name, Available); got != "True Available" {
			b.t.Errorf("%s, %s: %s", reason, name, got)
		}
	}
}

// TestOutageSeenUnevenly cuts this side off from 4 of 7 clusters, and checks some of
// these again and again before the others are checked once.
func TestOutageSeenUnevenly(t *testing.T) {
	clusters, names := entries(7)
	b := newBench(t, clusters...)
	b.check(names...)
	b.answer(down, names[:4]...)
	for _, name := range names[:2] {
		b.starved(name)
	}
	b.expectAvailable("before the others were checked", names...)
	b.check(names[2:]...)
	b.check(names...)
	b.expectAvailable("while most are cut off", names...)
	if !slices.Equal(b.said, []contract.FunctionState{contract.FunctionIsolated}) {
		t.Errorf("said %q", b.said)
	}
}

// TestVerdictAwaitsOthers has one cluster down: it turns False once each of the others has
// been asked since it failed first, or counts no more, and not before.
func TestVerdictAwaitsOthers(t *testing.T) {
	remove := func(b *bench, name string) {
		if err := b.client.ClusterregistryV1beta1().Clusters().Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			b.t.Fatal(err)
		}
		eventually(b.t, name+" to be forgotten", func() bool {
			b.Controller.mu.Lock()
			defer b.Controller.mu.Unlock()
			return b.states[name] == nil
		})
	}
	for _, test := range []struct {
		reason string
		// begin is when the others were checked already, and decide after the failures.
		begin, decide func(b *bench, others ...string)
	}{
		{"the others answer", nil, func(b *bench, others ...string) { b.check(others...) }},
		{"one fails too", nil, func(b *bench, others ...string) { b.answer(down, others[0]); b.check(others...) }},
		{"one was deleted", nil, func(b *bench, others ...string) { b.check(others[1:]...); remove(b, others[0]) }},
		{"one has no endpoint", nil, func(b *bench, others ...string) { b.answer(refused, others[0]); b.check(others...) }},
		{"the others were not asked since a restart", func(b *bench, others ...string) {
			for _, name := range others {
				b.added(b.get(name), true)
			}
		}, func(b *bench, others ...string) { b.check(others...) }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			clusters, names := entries(5)
			b := newBench(t, clusters...)
			b.check(names...)
			if test.begin != nil {
				test.begin(b, names[1:]...)
			}
			b.answer(down, names[0])
			b.starved(names[0])
			b.expectAvailable("before the others were checked", names[0])
			b.check(names[2:]...)
			b.check(names[0])
			b.expectAvailable("before the last of the others was checked", names[0])
			test.decide(b, names[1:]...)
			b.check(names[0])
			if got := b.shown(names[0], Available); got != "False ConnectionRefused" {
				t.Errorf("after it: %s", got)
			}
		})
	}
}

// TestVerdictAwaitsLaterProbe has another cluster answer a probe that began before the
// failures: that says nothing of what has happened since.
func TestVerdictAwaitsLaterProbe(t *testing.T) {
	clusters, names := entries(2)
	b := newBench(t, clusters...)
	b.check(names...)
	b.answer(down, names[0])
	b.Probe = func(ctx context.Context, target probe.Target) probe.Result {
		if strings.HasSuffix(target.Endpoint.URL, names[1]) {
			b.Probe = b.probe
			b.starved(names[0])
		}
		return b.probe(ctx, target)
	}
	b.check(names[1])
	b.check(names[0])
	b.expectAvailable("after the earlier probe", names...)
	b.clock.Step(time.Minute)
	b.check(names[1])
	b.check(names[0])
	if got := b.shown(names[0], Available); got != "False ConnectionRefused" {
		t.Errorf("after a later probe: %s", got)
	}
}

// TestDeletedWhileReported has a cluster deleted after it was read for a report: nothing
// is remembered of it, and no verdict waits for it.
func TestDeletedWhileReported(t *testing.T) {
	clusters, names := entries(2)
	b := newBench(t, clusters...)
	b.check(names...)
	gone, err := b.lister.Get(names[1])
	if err != nil {
		t.Fatal(err)
	}
	b.deleted(gone)
	if b.note(gone, ready, b.clock.Now()) {
		t.Error("a result of a deleted cluster is noted")
	}
	if written, err := b.publish(t.Context(), gone, gone.Spec.Endpoints[0]); written || err != nil {
		t.Errorf("it is reported: %v, %v", written, err)
	}
	if b.states[names[1]] != nil {
		t.Error("it is remembered")
	}
}
