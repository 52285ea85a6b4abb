package faults

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixSteady has the operator look at a Ready registry again and again: it writes
// nothing to the host but the leader's Lease. In "make test", e2e/integration reads the
// same from the host's audit log.
func TestMatrixSteady(t *testing.T) {
	e := framework.New(t).WithOperator()
	metrics := e.NewMetrics()
	registry := e.Sample("aggregated-single.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	before := settle(t, e, metrics)
	const looks = 20
	for i := range looks {
		touch(t, e, registry.Name+"-etcd-0", i)
		want := framework.Sum(before, reconciles) + float64(i) + 1
		e.Eventually("the operator to look at the registry", func(ctx context.Context) error {
			now, err := metrics.Read(ctx)
			if err != nil {
				return err
			}
			if got := framework.Sum(now, reconciles); got < want {
				return fmt.Errorf("it has %v times, not %v", got, want)
			}
			return nil
		})
	}
	after, err := metrics.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"PATCH", "POST", "DELETE"} {
		if writes := framework.Sum(after, "rest_client_requests_total", verb) - framework.Sum(before, "rest_client_requests_total", verb); writes != 0 {
			t.Errorf("%v requests with %s while nothing changed", writes, verb)
		}
	}
	t.Logf("%d looks at a steady registry, no writes", looks)
}

const reconciles = "controller_runtime_reconcile_total"

// settle waits until the last of an installation's events were looked at.
func settle(t *testing.T, e *framework.Env, metrics *framework.Metrics) (samples map[string]float64) {
	t.Helper()
	e.Eventually("the operator to have nothing left to do", func(ctx context.Context) error {
		last := framework.Sum(samples, "rest_client_requests_total", "PATCH")
		var err error
		if samples, err = metrics.Read(ctx); err != nil {
			return err
		}
		if now := framework.Sum(samples, "rest_client_requests_total", "PATCH"); now != last {
			return fmt.Errorf("it wrote %v times meanwhile", now-last)
		}
		return nil
	})
	return samples
}

// touch changes something of a pod that is nobody's business, of which the
// operator learns all the same.
func touch(t *testing.T, e *framework.Env, name string, i int) {
	t.Helper()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = e.Namespace, name
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, i)
	if err := e.Client.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}
