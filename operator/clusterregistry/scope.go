package clusterregistry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/endpoint"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
	"github.com/clusterregistry/operator/operator/volumes"
)

// scope is one reconcile of one registry: what was read, what follows from it, and
// what came of each stage.
type scope struct {
	// registry has its defaults filled in; its status is written by the stages.
	registry *operatorv1alpha1.ClusterRegistry
	// before is the status as it was read.
	before operatorv1alpha1.ClusterRegistryStatus
	now    time.Time
	// host is the version of the host, such as v1.37.1, and hostMinor the one that
	// servers are made for, such as 1.37.
	host, hostMinor string
	// etcdCA, servingCA and clientCA are the registry's CAs, and trust is what is
	// published of them.
	etcdCA, servingCA, clientCA trust.Authority
	trust                       render.Trust
	// terminating means that the registry's namespace is being deleted.
	terminating bool
	// addresses lead to the servers from outside, the one for clients first.
	addresses []string

	// identity is what is recorded of the registry's own etcd, nil when nothing is.
	// unmarked means that it has lost its labels or its annotation, and identityErr says
	// why it can't be read.
	identity    *etcd.Record
	unmarked    bool
	identityErr error
	// members are the names of those that the registry's own etcd has.
	members []string
	// volumes are those that the registry's own etcd has.
	volumes volumes.Volumes
	// release is what is rendered, and upgrade how far it is on its way to another.
	release  version.Release
	upgrade  *upgrade.Upgrade
	rendered *render.Result
	// etcdState is what etcd said, and etcdAccess how it was asked.
	etcdState  etcd.State
	etcdAccess etcd.Access
	// answering counts the servers that answered the operator itself, and serversAsked
	// is true when they were asked.
	answering    int
	serversAsked bool
	// available is whether clients are served.
	available availability
	// serversFailed says why the desired servers will not come up.
	serversFailed string

	// results are the verdicts of the stages, by condition.
	results map[string]verdict.Verdict
	// aggregation tells whether the registry may be a part of the host's API.
	aggregation verdict.Verdict
	// readOnly means that nothing may be changed any more in this pass: its writer
	// can't write from here on.
	readOnly bool
	// membersRolling is true while etcd members are replaced, or can be and are to be.
	membersRolling bool
	// rolling says what is being replaced, member by member or server by server.
	rolling string
}

// observe reads a registry and what decides on how it is rendered. It returns
// nil when there is no registry.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	registry := &operatorv1alpha1.ClusterRegistry{}
	// Not from the cache, which may be behind what was written last: inventory and
	// history must not lose anything.
	if err := r.Live.Get(ctx, key, registry); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s := &scope{registry: registry, before: *registry.Status.DeepCopy(), now: time.Now(), results: map[string]verdict.Verdict{}}
	operatorv1alpha1.SetDefaults(registry)
	var err error
	if s.terminating, err = r.terminating(ctx, registry.Namespace); err != nil {
		return nil, err
	}
	host, err := r.Discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the host cluster for its version: %w", err)
	}
	s.host, registry.Status.HostVersion = host.GitVersion, host.GitVersion
	if s.hostMinor, err = r.hostToRender(ctx, s); err != nil {
		return nil, err
	}
	if err := r.readTrust(ctx, s); err != nil {
		return nil, err
	}
	if s.addresses, err = endpoint.Addresses(ctx, r.Client, registry); err != nil {
		return nil, err
	}
	if registry.Spec.Etcd.External == nil {
		s.identity, s.unmarked, s.identityErr = r.readIdentity(ctx, s)
		s.members = memberNames(registry, s.identity)
	}
	if s.volumes, err = r.readVolumes(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// frozenBy returns what a stage says that made this pass read-only, nothing when
// none did. A pause is not among them.
func (s *scope) frozenBy() string {
	for _, kind := range s.parts() {
		if v := s.results[kind]; v.State == verdict.ReadOnly {
			return kind + ": " + v.Message
		}
	}
	return ""
}

// frozenUntil says what ends that nothing may be changed in this pass.
func (s *scope) frozenUntil() string {
	if _, until := s.halted(); until != "" {
		return until
	}
	return "this is resolved: " + s.frozenBy()
}

// installed reports whether the registry was complete once.
func (s *scope) installed() bool {
	return history.Installed(s.registry)
}

// key returns the name of one of the registry's objects.
func (s *scope) key(suffix string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.registry.Namespace, Name: s.registry.Name + suffix}
}

// meta returns the metadata of an object that is not rendered from a manifest.
func (s *scope) meta(suffix, component string) metav1.ObjectMeta {
	labels := render.Labels(s.registry)
	labels[operatorv1alpha1.LabelComponent] = component
	return metav1.ObjectMeta{Namespace: s.registry.Namespace, Name: s.registry.Name + suffix, Labels: labels}
}

// caKey is the key of a Secret with CA certificates.
const caKey = "ca.crt"

// secretValue returns a value of a Secret, nil when there is none.
func (r *Reconciler) secretValue(ctx context.Context, namespace, name, key string) ([]byte, error) {
	secret, err := r.secret(ctx, namespace, name)
	if err != nil || secret == nil {
		return nil, err
	}
	return secret.Data[key], nil
}

// secret reads a Secret by its name, nil when there is none. Secrets are not
// cached: the operator may not list them.
func (r *Reconciler) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil // past the schema; the host would call it an error
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, err
}
