package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// readIdentity returns the record of etcd's identity, nil when there is none. Unmarked
// means that it has lost labels by which the operator knows it, or the annotation that
// retains it.
func (r *Reconciler) readIdentity(ctx context.Context, s *scope) (record *etcd.Record, unmarked bool, err error) {
	stored := &corev1.ConfigMap{}
	// Not from the cache: what is behind, or lost its labels, must not look like an
	// etcd that never was.
	err = r.Live.Get(ctx, s.key(contract.IdentitySuffix), stored)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if record, err = etcd.ParseRecord(stored.Data); err != nil {
		return nil, false, fmt.Errorf("ConfigMap %s, the record of etcd's identity, is damaged: %w", stored.Name, err)
	}
	return record, !marked(stored, s) && apply.Belongs(stored, s.owner()), nil
}

// memberNames returns the names of the members that a registry's own etcd has: as many
// as are recorded, or as the spec asks for where there is no record yet. While the two
// differ, they are all of both: certificates are issued before that is found to be a
// problem, and must not lack the name of a member that runs.
func memberNames(registry *operatorv1alpha1.ClusterRegistry, recorded *etcd.Record) []string {
	members := registry.Spec.Etcd.Replicas
	if recorded != nil {
		members = max(members, recorded.Replicas)
	}
	var out []string
	for ordinal := range members {
		out = append(out, contract.EtcdMember(registry.Name, int(ordinal)))
	}
	return out
}

// writeIdentity records an etcd's identity. It is made for good: the finalizer removes
// it when nothing is to be retained.
func (r *Reconciler) writeIdentity(ctx context.Context, s *scope, record *etcd.Record) error {
	stored := &corev1.ConfigMap{ObjectMeta: s.recordMeta(), Data: record.Data(s.identity)}
	stored.APIVersion, stored.Kind = "v1", "ConfigMap"
	object, err := toUnstructured(stored)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, s, object); err != nil {
		return err
	}
	s.identity, s.unmarked = record, false
	return nil
}

// firstRecord returns the record to begin with, from what the status and the volumes
// tell.
func (s *scope) firstRecord() *etcd.Record {
	known := etcd.Identity{ClusterID: s.before.Etcd.ClusterID, Members: map[string]string{}}
	for _, member := range s.before.Etcd.Members {
		known.Members[member.Name] = member.ID
	}
	return etcd.NewRecord(s.registry.Spec.Etcd.Replicas, trust.KeyFingerprint(s.trust.Etcd), known, len(s.volumes.Members) > 0)
}

// learn records what etcd and the current pods have said that is new, and returns
// whether anything was. In a read-only pass it waits for another one.
func (r *Reconciler) learn(ctx context.Context, s *scope, current []string) (learned bool, err error) {
	if s.readOnly {
		return false, nil
	}
	seen := etcd.Observation{State: s.etcdState, Current: current, Release: s.release.Members.Release}
	for _, member := range s.registry.Status.Etcd.Members {
		seen.Versions = append(seen.Versions, member.Version)
	}
	record, learned := s.identity.Learn(seen)
	if !learned {
		return false, nil
	}
	return true, r.writeIdentity(ctx, s, record)
}

// recordRelease records the release whose servers write, or will.
func (r *Reconciler) recordRelease(ctx context.Context, s *scope, release string) error {
	if s.identity == nil || s.identity.Release == release {
		return nil
	}
	record := *s.identity
	record.Release = release
	return r.writeIdentity(ctx, s, &record)
}

// ownRecord has a record in the inventory that an earlier registry of this name has
// left, which was never applied for this one, and restores its labels and annotations.
func (r *Reconciler) ownRecord(ctx context.Context, s *scope) error {
	if !s.readOnly && s.unmarked {
		return r.writeIdentity(ctx, s, s.identity)
	}
	if s.readOnly || slices.Contains(s.registry.Status.Inventory, s.recordReference()) {
		return nil
	}
	return r.writeInventory(ctx, s, append(slices.Clone(s.registry.Status.Inventory), s.recordReference()))
}

// recordMeta returns the metadata of the record.
func (s *scope) recordMeta() metav1.ObjectMeta {
	meta := s.meta(contract.IdentitySuffix, "etcd")
	meta.Annotations = map[string]string{operatorv1alpha1.AnnotationRetain: "true"}
	return meta
}

// marked reports whether a record has the labels and annotations that it was made
// with.
func marked(record *corev1.ConfigMap, s *scope) bool {
	meta := s.recordMeta()
	return labels.SelectorFromSet(meta.Labels).Matches(labels.Set(record.Labels)) &&
		labels.SelectorFromSet(meta.Annotations).Matches(labels.Set(record.Annotations))
}

// recordReference refers to the record of etcd's identity.
func (s *scope) recordReference() operatorv1alpha1.ObjectReference {
	return operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: s.registry.Namespace, Name: s.registry.Name + contract.IdentitySuffix}
}

// identityProblem says why the etcd that was recorded can't be this registry's.
func (s *scope) identityProblem() verdict.Verdict {
	recorded, ca := s.identity, trust.KeyFingerprint(s.trust.Etcd)
	err := recorded.Check(s.registry.Spec.Etcd.Replicas, ca)
	switch {
	case err == nil:
		return done
	case errors.Is(err, etcd.ErrReplicasDiffer):
		what := fmt.Sprintf("etcd has %d members, and changing that is not supported yet: set spec.etcd.replicas back to %d", recorded.Replicas, recorded.Replicas)
		if !s.installed() {
			what = fmt.Sprintf("there is retained data of a registry of this name whose etcd has %d members: delete this ClusterRegistry and apply it again with spec.etcd.replicas %d, which takes the data over; or, to begin without that data, delete ConfigMap %s and the PersistentVolumeClaims of %s%s",
				recorded.Replicas, recorded.Replicas, s.registry.Name+contract.IdentitySuffix, s.registry.Name, contract.EtcdSuffix)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonReplicasDiffer, "%s", what).AsReadOnly()
	case errors.Is(err, etcd.ErrCADiffers):
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "the CA in Secret %s%s has a different key than the one that etcd members trust: restore that Secret from a backup%s; nothing is changed until then (key %s, recorded %s)", s.registry.Name, contract.EtcdCASuffix, s.etcdRenewal(), short(ca), short(recorded.CA)).AsReadOnly()
	}
	return verdict.Failed(err)
}

// etcdRenewal says when the first of etcd's certificates is renewed, which the
// members would not trust if another CA signed it.
func (s *scope) etcdRenewal() string {
	var first *metav1.Time
	for _, certificate := range s.registry.Status.Certificates {
		ofEtcd := slices.ContainsFunc(s.etcdLeaves(), func(l leaf) bool { return certificate.Name == s.registry.Name+l.suffix })
		if ofEtcd && certificate.RenewalTime != nil && (first == nil || certificate.RenewalTime.Before(first)) {
			first = certificate.RenewalTime
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf(" before %s, when the first etcd certificate is renewed, which they would reject", first.UTC().Format(time.RFC3339))
}

func short(fingerprint string) string { return fingerprint[:min(12, len(fingerprint))] }

// toUnstructured returns a typed object as one that can be applied.
func toUnstructured(object client.Object) (*unstructured.Unstructured, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp")
	delete(tree, "status")
	return &unstructured.Unstructured{Object: tree}, nil
}
