package provider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
)

// TestStaleHealth has the controller of a registry, whose entries say that their clusters are
// available, be dead before the provider starts, live, die and live again.
func TestStaleHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, holder := time.Now(), "controller-1"
		host := kubefake.NewSimpleClientset()
		leases := host.CoordinationV1().Leases("team")
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "fleet-controller", Namespace: "team"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
		renew := func(at time.Time) {
			t.Helper()
			renewed := metav1.NewMicroTime(at)
			lease.Spec.RenewTime = &renewed
			if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		p, err := New(optionsProbed(t, Renewed(leases, "fleet-controller")))
		if err != nil {
			t.Fatal(err)
		}
		defer p.queue.ShutDown()
		expect := func(reason, says string) {
			t.Helper()
			p.askProbing(t.Context())
			if got := p.unprobed; (got == nil) != (says == "") || got != nil && !strings.Contains(got.Error(), says) {
				t.Errorf("%s: %v, want %q", reason, got, says)
			}
		}
		expect("there is no Lease", "it is not known whether its condition Available is of now: read the Lease")
		if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("no one holds it", "the Lease fleet-controller has no holder")
		renew(begun.Add(-time.Hour))
		expect("it is dead", "nothing has probed the clusters of the registry since 1999-12-31T23:00:00Z")
		renew(begun.Add(-50 * time.Minute))
		expect("it is renewed, by a clock that is late", "")
		time.Sleep(unheard)
		expect("it is silent", "")
		time.Sleep(time.Second)
		expect("it is silent for too long", "may be out of date")
		renew(time.Now().Add(time.Hour))
		expect("it is renewed, by a clock that is early", "")
		if err := leases.Delete(t.Context(), "fleet-controller", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("the host cluster was not reached once", "")
		time.Sleep(unheard + time.Second)
		expect("the host cluster is not reached", "read the Lease")
	})
}

// TestStaleHealthEngagesNothing engages no cluster by what its entry says while nothing probes
// clusters. What is engaged stays so.
func TestStaleHealthEngagesNothing(t *testing.T) {
	east := startServer(t)
	dead := optionsProbed(t, func(context.Context) (time.Time, error) { return time.Now().Add(-time.Hour), nil })
	f := startWith(t, dead, east.at("east"))
	f.refused("east", "may be out of date: nothing has probed the clusters of the registry since")

	live := optionsProbed(t, func(context.Context) (time.Time, error) { return time.Now(), nil })
	f = startWith(t, live, east.at("east"))
	first := f.next("east")
	f.lock.Lock()
	f.unprobed = errors.New("nothing has probed")
	f.lock.Unlock()
	f.write(east.at("east"))
	west := startServer(t)
	f.write(west.at("west"))
	f.refused("west", "nothing has probed")
	if got, err := f.Get(t.Context(), "east"); err != nil || got != first.cluster {
		t.Errorf("got %v, %v", got, err)
	}
}
