package announce

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterregistry/operator/internal/contract"
)

func TestAnnouncer(t *testing.T) {
	client := fake.NewSimpleClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c", Annotations: map[string]string{"another": "stays"}}})
	leases := client.CoordinationV1().Leases("fleet")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := testingclock.NewFakeClock(start)
	failures := 1
	client.PrependReactor("patch", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
		failures--
		return failures >= 0, nil, errors.New("away")
	})
	a := New(leases, "c", "pod-1", clock)
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
			if clock.HasWaiters() {
				clock.Step(retry) // what failed is tried again
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
	a.Say("health", contract.FunctionRunning, "")
	select {
	case <-a.changed:
		t.Error("what was said already is written again")
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
