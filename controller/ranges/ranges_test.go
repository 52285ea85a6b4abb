package ranges

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

func TestHost(t *testing.T) {
	client := fake.NewSimpleClientset(
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/12", "fd10:96::/112"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{PodCIDR: "10.244.0.0/24", PodCIDRs: []string{"10.244.0.0/24", "fd10:244::/64"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24"}},
	)
	refusals := 2
	client.PrependReactor("list", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
		refusals--
		return refusals >= 0, nil, errors.New("nodes is forbidden")
	})
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	h := New(client, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, netip.Addr{}, clock)
	var told []error
	ended := make(chan error, 1)
	go func() { ended <- h.Await(t.Context(), func(err error) { told = append(told, err) }) }()
	for done := false; !done; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		case <-time.After(time.Millisecond):
			if clock.HasWaiters() {
				clock.Step(retry)
			}
		}
	}
	want := "[192.0.2.0/24 10.96.0.0/12 fd10:96::/112 10.244.0.0/24 fd10:244::/64 10.244.1.0/24]"
	if got := h.Prefixes(); fmt.Sprint(got) != want || len(told) != 2 {
		t.Errorf("%v, want %s; told %v", got, want, told)
	}
}

// TestGiven needs no right in the host cluster.
func TestGiven(t *testing.T) {
	given := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}
	h := New(nil, given, netip.Addr{}, testingclock.NewFakeClock(time.Unix(0, 0)))
	if err := h.Await(t.Context(), func(error) {}); err != nil || !slices.Equal(h.Prefixes(), given) {
		t.Errorf("%v, %v", h.Prefixes(), err)
	}
	h.Follow(t.Context()) // returns
}

// TestAwaitEnds gives up with its context, and knows nothing.
func TestAwaitEnds(t *testing.T) {
	client := fake.NewSimpleClientset()
	client.PrependReactor("list", "*", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	ctx, cancel := context.WithCancel(t.Context())
	h := New(client, nil, netip.Addr{}, testingclock.NewFakeClock(time.Unix(0, 0)))
	if err := h.Await(ctx, func(error) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestGap expects that a pod with an address outside of all ranges shows that those of pods
// are not known, until they are given or read, and is refused itself in any case.
func TestGap(t *testing.T) {
	own := netip.MustParseAddr("10.1.2.3")
	for _, test := range []struct {
		reason string
		nodes  []string
		given  string
		own    netip.Addr
		gap    bool
	}{
		{"a plugin with addresses of its own", nil, "", own, true},
		{"a plugin that ignores podCIDRs", []string{"10.244.0.0/24"}, "", own, true},
		{"a range of its node", []string{"10.244.0.0/24", "10.1.2.0/24"}, "", own, false},
		{"a range that is given", nil, "10.1.0.0/16", own, false},
		{"another range that is given", nil, "10.2.0.0/16", own, true},
		{"no pod", nil, "", netip.Addr{}, false},
	} {
		client := fake.NewSimpleClientset()
		for i, cidr := range test.nodes {
			if err := client.Tracker().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Spec: corev1.NodeSpec{PodCIDRs: []string{cidr}}}); err != nil {
				t.Fatal(err)
			}
		}
		var given []netip.Prefix
		if test.given != "" {
			given = append(given, netip.MustParsePrefix(test.given))
		}
		h := New(client, given, test.own, testingclock.NewFakeClock(time.Unix(0, 0)))
		if gap := h.Gap(); gap != "" {
			t.Errorf("%s: before anything is read: %s", test.reason, gap)
		}
		if err := h.Await(t.Context(), func(error) {}); err != nil {
			t.Fatal(err)
		}
		if gap := h.Gap(); (gap != "") != test.gap || test.gap && (!strings.Contains(gap, "The pod of this controller (10.1.2.3) is in none") || !strings.Contains(gap, "spec.controllers.health.hostCIDRs (--host-cidrs)")) {
			t.Errorf("%s: %q", test.reason, gap)
		}
		if refused := slices.Contains(h.Prefixes(), netip.PrefixFrom(own, 32)); refused != test.own.IsValid() {
			t.Errorf("%s: %v", test.reason, h.Prefixes())
		}
	}
}
