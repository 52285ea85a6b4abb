package clusterregistry

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/address"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/rotation"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/stage/restoring"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/volumes"
)

// observe reads a registry and what decides on how it is rendered. It returns
// nil when there is no registry, and beside an error what decides on whether the registry is
// unregistered, if that is known.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	registry := &operatorv1alpha1.ClusterRegistry{}
	// Not from the cache, which may be behind what was written last: inventory and
	// history must not lose anything.
	unread := informers.Read(ctx, r.Live, key, registry)
	if unread != nil {
		if registry = apiservice.Legible(unread); registry == nil {
			return nil, client.IgnoreNotFound(unread)
		}
	}
	s := newScope(&operand.Objects{HostCluster: r.HostCluster, Registry: registry, Before: *registry.Status.DeepCopy(), Secrets: &operand.Secrets{}, Now: time.Now()})
	operatorv1alpha1.SetDefaults(registry)
	if registry.Spec.Etcd.External == nil {
		s.Identity = identity.Read(ctx, s.Objects)
	}
	var err error
	if s.Authorities, err = rotation.Read(ctx, s.Pass); err != nil {
		s.Authorities = &trust.Authorities{Err: err}
		return s, cmp.Or(unread, err)
	}
	if unread != nil {
		return s, unread
	}
	if err := r.readNamespace(ctx, s); err != nil {
		return s, err
	}
	host, err := r.Discovery.ServerVersion()
	if err != nil {
		return s, fmt.Errorf("ask the host cluster for its version: %w", err)
	}
	s.HostVersion, registry.Status.HostVersion = host.GitVersion, host.GitVersion
	if s.hostMinor, err = r.hostToRender(ctx, s); err != nil {
		return s, err
	}
	if s.InTheWay, err = restoring.InTheWay(ctx, s.Pass); err != nil {
		return s, err
	}
	if clients := s.Authorities.Clients.Bundle(); len(clients) > 0 {
		registry.Status.ClientCABundle = clients
	}
	if s.addresses, err = address.Addresses(ctx, r.Client, registry); err != nil {
		return s, err
	}
	if s.Volumes, err = volumes.Read(ctx, s.Live, registry, s.Identity.Members()); err != nil {
		return s, err
	}
	return s, nil
}

// hostToRender returns the version of the host that servers are to be made for,
// such as 1.37: that for which they are made already, until the host has been
// another one for long enough.
func (r *Reconciler) hostToRender(ctx context.Context, s *scope) (string, error) {
	answered := semver.MajorMinor(s.HostVersion)
	steady := s.Now.Sub(r.host.heard(answered, s.Now))
	if s.Registry.Spec.Mode != operatorv1alpha1.ModeAggregated {
		return strings.TrimPrefix(answered, "v"), nil
	}
	deployment, err := s.Deployment(ctx)
	if err != nil {
		return "", err
	}
	if deployment != nil {
		made := "v" + deployment.Spec.Template.Annotations[operatorv1alpha1.AnnotationHostVersion]
		order := semver.Compare(answered, made)
		if semver.IsValid(made) && (order > 0 && steady < hostNewer || order < 0 && steady < hostOlder) {
			answered = made
		}
	}
	return strings.TrimPrefix(answered, "v"), nil
}
