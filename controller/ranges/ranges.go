// Package ranges finds out which addresses belong to the Services and pods of the host
// cluster, so that no entry of a registry leads the controller there.
//
// It reads the ServiceCIDRs and what nodes have in spec.podCIDRs. Network plugins that
// give pods addresses of their own choice write neither: for them the ranges are given.
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
	clock  clock.Clock
	known  atomic.Pointer[[]netip.Prefix]
}

// New returns what reads the ranges of a cluster, besides those that are given. Without
// a client only the latter are known.
func New(client kubernetes.Interface, given []netip.Prefix, c clock.Clock) *Host {
	h := &Host{client: client, given: given, clock: c}
	if client == nil {
		h.known.Store(&given)
	}
	return h
}

// Prefixes returns the ranges. Before Await has returned they are not complete.
func (h *Host) Prefixes() []netip.Prefix {
	if known := h.known.Load(); known != nil {
		return *known
	}
	return h.given
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
	h.known.Store(&out)
	return nil
}

func rangesOfNode(n *corev1.Node) []string {
	if len(n.Spec.PodCIDRs) == 0 && n.Spec.PodCIDR != "" {
		return []string{n.Spec.PodCIDR}
	}
	return n.Spec.PodCIDRs
}
