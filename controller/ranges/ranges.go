// Package ranges finds out which addresses belong to the Services and pods of the host
// cluster, so that no entry of a registry leads the controller there.
//
// It reads the ServiceCIDRs and what nodes have in spec.podCIDRs. Network plugins that
// give pods addresses of their own choice write neither: for them the ranges are given. The
// address of the pod that this program runs in shows whether they have to be.
package ranges

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// retry is the time between attempts until the first one succeeds, refresh that
	// between readings after it: a new node's range is unknown for that long.
	retry   = 10 * time.Second
	refresh = 5 * time.Minute
)

// Host knows the ranges of a host cluster.
type Host struct {
	client kubernetes.Interface
	given  []netip.Prefix
	own    netip.Addr
	clock  clock.Clock
	known  atomic.Pointer[known]
}

// known is what is known of a host cluster.
type known struct {
	prefixes []netip.Prefix
	// gap is true when the own pod's address is in none of the ranges, and so those of
	// other pods may be in none.
	gap bool
}

// New returns what reads the ranges of a cluster, besides those that are given. Without
// a client only the latter are known. Own is the address of the pod that this program
// runs in, which is a range, too; it is not valid outside of a pod.
func New(client kubernetes.Interface, given []netip.Prefix, own netip.Addr, c clock.Clock) *Host {
	h := &Host{client: client, given: given, own: own, clock: c}
	if client == nil {
		h.known.Store(h.with(given))
	}
	return h
}

// with adds the own pod to ranges.
func (h *Host) with(prefixes []netip.Prefix) *known {
	if !h.own.IsValid() {
		return &known{prefixes: prefixes}
	}
	gap := !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(h.own) })
	return &known{prefixes: append(slices.Clip(prefixes), netip.PrefixFrom(h.own, h.own.BitLen())), gap: gap}
}

// Prefixes returns the ranges. Before Await has returned they are not complete.
func (h *Host) Prefixes() []netip.Prefix {
	if known := h.known.Load(); known != nil {
		return known.prefixes
	}
	return h.with(h.given).prefixes
}

// Gap says, for people, that pods have addresses that are in no range; "" when nothing
// shows that.
func (h *Host) Gap() string {
	if known := h.known.Load(); known == nil || !known.gap {
		return ""
	}
	return fmt.Sprintf("The pod of this controller (%s) is in none of the ranges of the host cluster's pods that are known, so that whoever may write an entry can have other pods probed: add the range of pods to spec.controllers.health.hostCIDRs (--host-cidrs).", h.own)
}

// Await returns when the ranges are known. Each time that they could not be read, it
// tells why.
func (h *Host) Await(ctx context.Context, tell func(error)) error {
	for h.known.Load() == nil {
		err := h.read(ctx)
		if err == nil {
			return nil
		}
		tell(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.clock.After(retry):
		}
	}
	return nil
}

// Follow reads the ranges again and again until ctx ends. What can't be read stays.
func (h *Host) Follow(ctx context.Context) {
	for h.client != nil {
		select {
		case <-ctx.Done():
			return
		case <-h.clock.After(refresh):
		}
		if err := h.read(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The ranges of the host cluster could not be read again")
		}
	}
}

func (h *Host) read(ctx context.Context) error {
	out := slices.Clone(h.given)
	add := func(cidrs ...string) error {
		for _, cidr := range cidrs {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil {
				return fmt.Errorf("the host cluster has a range %q: %w", cidr, err)
			}
			out = append(out, prefix.Masked())
		}
		return nil
	}
	services, err := h.client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the ServiceCIDRs of the host cluster: %w", err)
	}
	for _, item := range services.Items {
		if err := add(item.Spec.CIDRs...); err != nil {
			return err
		}
	}
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return h.client.CoreV1().Nodes().List(ctx, options)
	})
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		return add(rangesOfNode(object.(*corev1.Node))...)
	})
	if err != nil {
		return fmt.Errorf("list the nodes of the host cluster: %w", err)
	}
	h.known.Store(h.with(out))
	return nil
}

func rangesOfNode(n *corev1.Node) []string {
	if len(n.Spec.PodCIDRs) == 0 && n.Spec.PodCIDR != "" {
		return []string{n.Spec.PodCIDR}
	}
	return n.Spec.PodCIDRs
}
