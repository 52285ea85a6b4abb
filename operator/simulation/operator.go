package simulation

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterregistry/operator/internal/etcdclient"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/clusterregistry"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/version"
)

// operator is the operator, from its start until it is killed. It reconciles as
// controller-runtime has it, but never two registries at once, nor by chance.
type operator struct {
	w          *world
	reconciler *clusterregistry.Reconciler
	cache      *cache
	retries    workqueue.TypedRateLimiter[reconcile.Request]
	// called is true when the registry is to be reconciled now, and due when it is at the
	// latest, zero for never.
	called bool
	due    time.Time
}

// request is that of the registry.
var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: key.namespace, Name: key.name}}

// hostCA signs for the host cluster's API server.
var hostCA = []byte("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n")

// start starts an operator.
func (w *world) start() {
	w.note("an operator starts")
	o := &operator{w: w, cache: newCache(w.host)}
	config := &rest.Config{Host: "http://host", Transport: front{w}, QPS: 1000, Burst: 1000}
	live, all := reader{w}, writer{reader{w}, o.cache}
	releases, err := version.Releases()
	if err != nil {
		w.t.Fatal(err)
	}
	o.reconciler = &clusterregistry.Reconciler{
		HostCluster: operand.HostCluster{Client: all, Live: live, Applier: apply.New(all, live, informers.MetadataOnly()...), Events: recorder{w}},
		Discovery:   discovery.NewDiscoveryClientForConfigOrDie(config), Releases: releases, Host: config, HostCA: hostCA,
		Environment: render.Environment{ImageRepository: "registry.example", Namespace: "clusterregistry-system", ClusterDomain: "cluster.local"},
		Namespaces:  permission.Namespaces{Aggregated: []string{permission.AllNamespaces}},
		AskEtcd:     func(ctx context.Context, access etcd.Access) etcd.State { return access.Observe(ctx) },
		AskServer:   w.askServer, Dial: w.dialServer, Handshake: w.handshake,
		DialEtcd: func(ctx context.Context, member etcdclient.Member) (net.Conn, error) {
			w.asked("a connection to etcd")
			return w.dialEtcd(ctx, member)
		},
	}
	o.retries = o.reconciler.Retries()
	for _, trigger := range o.reconciler.Triggers(func(late clusterregistry.Trigger) error { return o.watch(late) }) {
		if err := o.watch(trigger); err != nil {
			w.t.Fatal(err)
		}
	}
	w.operator = o
}

func (o *operator) watch(trigger clusterregistry.Trigger) error {
	o.calls(o.cache.watch(o.w.t.Context(), trigger))
	return nil
}

// calls takes up what calls for registries.
func (o *operator) calls(requests []reconcile.Request) {
	for _, called := range requests {
		o.called = o.called || called == request
	}
}

// after has the registry be reconciled then, unless it is before anyway.
func (o *operator) after(delay time.Duration) {
	if due := time.Now().Add(delay); o.due.IsZero() || due.Before(o.due) {
		o.due = due
	}
}

// operate has the operator hear of changes, and reconcile if it is to.
func (w *world) operate() {
	if w.operator == nil {
		if time.Now().After(w.starts) {
			w.start()
		}
		return
	}
	o := w.operator
	for _, kind := range o.cache.behind() {
		if w.chance(w.faults.late) {
			continue
		}
		for len(o.cache.late[kind]) > 0 && !w.chance(w.faults.late) {
			o.calls(o.cache.deliver(w.t.Context(), kind))
		}
	}
	if !o.called && (o.due.IsZero() || time.Now().Before(o.due)) {
		return
	}
	o.called = false
	if !o.due.After(time.Now()) {
		o.due = time.Time{}
	}
	o.reconcile()
}

// reconcile reconciles once. An operator that is killed meanwhile is followed by another one.
func (o *operator) reconcile() {
	w := o.w
	defer func() {
		switch reason := recover(); reason {
		case nil:
		case killed{}:
			w.operator, w.starts = nil, time.Now().Add(time.Duration(w.random.IntN(20))*time.Second)
		default:
			panic(reason)
		}
	}()
	w.note("reconcile")
	result, err := o.reconciler.Reconcile(w.t.Context(), request)
	switch {
	case err != nil:
		delay := o.retries.When(request)
		w.note("  again in %s: %v", delay, err)
		if delay > 30*time.Second { // invariant 14
			w.fails("after an error, the operator looks again after %s only", delay)
		}
		o.after(delay)
	case result.RequeueAfter > 0:
		o.retries.Forget(request)
		o.after(result.RequeueAfter)
	default:
		o.retries.Forget(request)
	}
}

// recorder notes the operator's events.
type recorder struct{ w *world }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.w.note("  event %s %s: %s", kind, reason, fmt.Sprintf(note, args...))
}

// front is the front of the host cluster's API server, where it is asked by HTTP.
type front struct{ w *world }

// RoundTrip implements http.RoundTripper.
func (f front) RoundTrip(request *http.Request) (*http.Response, error) {
	return f.w.answer(request), nil
}
