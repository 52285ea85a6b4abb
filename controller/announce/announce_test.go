package announce

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterregistry/operator/internal/contract"
)

// TestLostAnnouncement has the Lease deleted and made again, its annotation emptied and
// garbled, and the Lease taken by another replica, while nothing changes that could be said.
func TestLostAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holder := "pod-1"
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
		client := fake.NewSimpleClientset(lease)
		leases := client.CoordinationV1().Leases("fleet")
		writes := 0
		client.PrependReactor("patch", "leases", func(kubetesting.Action) (bool, runtime.Object, error) { writes++; return false, nil, nil })
		a := New(leases, "c", holder, clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		has := func(want string) {
			t.Helper()
			time.Sleep(recheck + retry + time.Second)
			got, err := leases.Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil || got.Annotations[contract.ControllerStatusAnnotation] != want {
				t.Fatalf("%v, %q, want %q", err, got.Annotations, want)
			}
		}
		update := func(change func(*coordinationv1.Lease)) {
			t.Helper()
			now, err := leases.Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			change(now)
			if _, err := leases.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		has("") // nothing was said
		a.Say("health", contract.FunctionRunning, "")
		time.Sleep(time.Hour)
		now, err := leases.Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		said := now.Annotations[contract.ControllerStatusAnnotation]
		if said == "" || writes != 1 {
			t.Fatalf("%q after %d writes", said, writes)
		}
		if err := leases.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil { // as the election does
			t.Fatal(err)
		}
		has(said)
		update(func(l *coordinationv1.Lease) { l.Annotations = nil })
		has(said)
		update(func(l *coordinationv1.Lease) { l.Annotations[contract.ControllerStatusAnnotation] = "?" })
		has(said)
		update(func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{}; l.Annotations = nil })
		has(said)
		other := "pod-2"
		update(func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity = &other
			l.Annotations[contract.ControllerStatusAnnotation] = "another's"
		})
		has("another's")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAnnouncer(t *testing.T) {
	client := fake.NewSimpleClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c", Annotations: map[string]string{"another": "stays"}}})
	leases := client.CoordinationV1().Leases("fleet")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ticks := testingclock.NewFakeClock(start)
	failures := 1
	client.PrependReactor("patch", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
		failures--
		return failures >= 0, nil, errors.New("away")
	})
	a := New(leases, "c", "pod-1", ticks)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	await := func(what string, done func(contract.ControllerStatus) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			lease, err := leases.Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil || lease.Annotations["another"] != "stays" {
				t.Fatalf("%v, %v", lease, err)
			}
			var status contract.ControllerStatus
			if content := lease.Annotations[contract.ControllerStatusAnnotation]; content != "" {
				if err := json.Unmarshal([]byte(content), &status); err != nil {
					t.Fatal(err)
				}
			}
			if done(status) {
				return
			}
			if ticks.HasWaiters() {
				ticks.Step(retry) // what failed is tried again
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, status)
			}
		}
	}
	a.Say("health", contract.FunctionStarting, "Waiting.")
	await("the first state", func(s contract.ControllerStatus) bool {
		return s.Holder == "pod-1" && s.Functions["health"].State == contract.FunctionStarting && s.Functions["health"].Since.Equal(start)
	})
	a.Say("registerHost", contract.FunctionRefused, "Because.")
	a.Say("health", contract.FunctionRunning, "")
	await("both", func(s contract.ControllerStatus) bool {
		return s.Functions["health"].State == contract.FunctionRunning && s.Functions["registerHost"].Message == "Because."
	})
	for len(a.changed) > 0 { // what was written with the one before is taken after it
		time.Sleep(time.Millisecond)
	}
	a.Say("health", contract.FunctionRunning, "")
	if len(a.changed) > 0 {
		t.Error("what was said already is written again")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
