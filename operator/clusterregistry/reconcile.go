package clusterregistry

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// Reconciler drives registries. All fields are required but for Namespaces and
// AggregatedNamespaces.
type Reconciler struct {
	// Client reads the operator's own objects through a cache and writes; Live
	// reads all others of the host.
	Client client.Client
	Live   client.Reader
	// Discovery asks the host what it is and what it serves.
	Discovery discovery.DiscoveryInterface
	Applier   *apply.Applier
	Events    events.EventRecorder
	// Releases are those that can run.
	Releases    []version.Release
	Environment render.Environment
	// Host leads to the host, through which an aggregated registry is used.
	Host *rest.Config
	// HostCA signs for the host's API server, in PEM.
	HostCA []byte
	// Namespaces are those whose registries are this operator's; none means all.
	Namespaces []string
	// AggregatedNamespaces are those whose registries may be a part of the host's
	// API, AllNamespaces among them means all; none means no one's.
	AggregatedNamespaces []string
	// AskEtcd and AskServer reach into the registry: etcd members, and API
	// servers at an address.
	AskEtcd   func(context.Context, etcd.Access) etcd.State
	AskServer func(context.Context, health.Server) (version string, err error)

	certManager certManager
	notes       upgrade.Notes
	host        answers
	outages     outages
}

// stage brings one part of a registry up and says what it waits for.
type stage struct {
	condition string
	run       func(*Reconciler, context.Context, *scope) verdict.Verdict
}

func stages(mode operatorv1alpha1.Mode) []stage {
	all := []stage{
		{operatorv1alpha1.ConditionCertificatesReady, (*Reconciler).certificates},
		{operatorv1alpha1.ConditionEtcdReady, (*Reconciler).etcd},
		{operatorv1alpha1.ConditionServerReady, (*Reconciler).server},
	}
	if mode == operatorv1alpha1.ModeAggregated {
		return append(all, stage{operatorv1alpha1.ConditionAPIServiceReady, (*Reconciler).apiService})
	}
	return append(all, stage{operatorv1alpha1.ConditionEndpointReady, (*Reconciler).endpoint})
}

// Reconcile drives one ClusterRegistry toward its spec:
//  1. observe: read it and what decides on its objects, once, into a scope
//  2. plan:    which release may run?
//  3. render:  scope to objects, without side effects
//  4. stages:  certificates, etcd, server, endpoint; each waits for the one before
//  5. advance: an upgrade goes to its next phase when the present one is complete
//  6. read:    are clients served now?
//  7. report:  conditions from the scope, one status patch, always
//
// A registry that is gone leaves nothing behind, a deleted one goes in order.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.Watches(request.Namespace) {
		return reconcile.Result{}, nil // an object outside of namespaces named it
	}
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil {
		return reconcile.Result{}, r.sweep(ctx, request.NamespacedName)
	}
	if s.registry.Status.Operation == nil || s.deleting() != "" {
		r.notes.Forget(s.registry.UID)
	}
	if s.deleting() != "" {
		return r.delete(ctx, s)
	}
	if !controllerutil.ContainsFinalizer(s.registry, operatorv1alpha1.Finalizer) {
		// This comes before everything else: what is made is to be removed.
		if err := r.patchFinalizers(ctx, s, controllerutil.AddFinalizer); err != nil {
			return reconcile.Result{}, fmt.Errorf("add the finalizer to %s: %w", s.owner(), err)
		}
	}
	r.run(ctx, s)
	s.available = r.available(ctx, s)
	return r.report(ctx, s)
}

// run goes through plan, render and stages, as far as it gets.
func (r *Reconciler) run(ctx context.Context, s *scope) {
	s.aggregation = r.aggregation(s)
	proceed := s.record(operatorv1alpha1.ConditionVersionSupported, s.plan(r.Releases))
	if !s.aggregation.Complete() {
		defer s.notAggregated()
	}
	if !proceed || !s.aggregation.Complete() && !s.installed() {
		return
	}
	if err := r.retire(ctx, s); err != nil {
		s.record(operatorv1alpha1.ConditionCertificatesReady, verdict.Failed(err))
		return
	}
	rendered, err := render.Render(s.input(r.Environment))
	if err != nil {
		s.record(operatorv1alpha1.ConditionVersionSupported, verdict.Failed(fmt.Errorf("render the objects of %s: %w", s.release.Version, err)))
		return
	}
	s.rendered = rendered
	s.readOnly = s.paused()
	for _, stage := range stages(s.registry.Spec.Mode) {
		if !s.record(stage.condition, stage.run(r, ctx, s)) {
			return
		}
	}
	s.results[operatorv1alpha1.ConditionProgressing] = r.proceed(ctx, s)
}

// proceed takes the registry further once the stages have run: what is not rendered any
// more goes, and an upgrade advances.
func (r *Reconciler) proceed(ctx context.Context, s *scope) verdict.Verdict {
	err := unlessReadOnly(r.prune(ctx, s))
	v := done
	if s.upgrade != nil {
		v = r.advance(ctx, s)
	}
	if err == nil {
		return v
	}
	left := verdict.Failed(fmt.Errorf("delete objects that are no longer part of the registry: %w", err))
	if v.Complete() {
		return left
	}
	v.Message, v.Err = v.Message+"; besides, "+left.Message, cmp.Or(v.Err, left.Err)
	return v
}

// record keeps what came of a stage and returns whether the next one follows. In
// a registry that was complete once all stages run, since there each of them has
// something to look after.
func (s *scope) record(condition string, v verdict.Verdict) (proceed bool) {
	s.results[condition] = v
	if v.State == verdict.ReadOnly {
		s.readOnly = true
	}
	return v.Usable() || s.installed() && s.rendered != nil
}

// paused reports whether nothing may be changed now. In an upgrade that is so
// between its phases, never in the middle of one.
func (s *scope) paused() bool {
	between := s.upgrade == nil || s.upgrade.PhaseCompleted || s.upgrade.Phase == operatorv1alpha1.PhasePreflight
	reason, _ := s.halted()
	return reason != "" && between
}

func (s *scope) input(environment render.Environment) render.Input {
	snapshot := ""
	if s.upgrade != nil && s.upgrade.Phase == operatorv1alpha1.PhaseSnapshot {
		snapshot = s.upgrade.Snapshot
	}
	return render.Input{
		Snapshot:    snapshot,
		Members:     s.members,
		Volumes:     s.volumes.Rendered(),
		Registry:    s.registry,
		Release:     render.ReleaseOf(s.release),
		HostVersion: s.hostMinor,
		Trust:       s.trust,
		Addresses:   s.addresses,
		Environment: environment,
	}
}

// patchFinalizers changes nothing of a registry but its finalizers, and only if
// no one else has changed the registry since it was read.
func (r *Reconciler) patchFinalizers(ctx context.Context, s *scope, change func(client.Object, string) bool) error {
	before := &operatorv1alpha1.ClusterRegistry{}
	before.Name, before.Namespace, before.ResourceVersion = s.registry.Name, s.registry.Namespace, s.registry.ResourceVersion
	before.Finalizers = s.registry.Finalizers
	after := before.DeepCopy()
	change(after, operatorv1alpha1.Finalizer)
	return r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
