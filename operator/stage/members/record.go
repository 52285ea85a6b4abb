package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// firstRecord returns the record to begin with, from what the status and the volumes
// tell.
func (s *Stage) firstRecord() *etcd.Record {
	known := etcd.Identity{ClusterID: s.Before.Etcd.ClusterID, Members: map[string]string{}}
	for _, member := range s.Before.Etcd.Members {
		known.Members[member.Name] = member.ID
	}
	record := etcd.NewRecord(s.Registry.Spec.Etcd.Replicas, trust.KeyFingerprint(s.Authorities.Etcd.Current), known, len(s.Volumes.Members) > 0)
	if inUse := s.Authorities.Etcd.InUse; inUse.Signing > generation.First {
		record.Generations = inUse
	}
	return record
}

// learn records what etcd and the current pods have said that is new, and returns
// whether anything was. In a read-only pass it waits for another one.
func (s *Stage) learn(ctx context.Context, current []string) (learned bool, err error) {
	if s.ReadOnly() {
		return false, nil
	}
	seen := etcd.Observation{State: s.found.State, Current: current, Release: s.Release}
	for _, member := range s.Registry.Status.Etcd.Members {
		seen.Versions = append(seen.Versions, member.Version)
	}
	record, learned := s.Identity.Record.Learn(seen)
	if !learned {
		return false, nil
	}
	return true, s.Identity.Write(ctx, record)
}

// identityProblem says why the etcd that was recorded can't be this registry's.
func (s *Stage) identityProblem() verdict.Verdict {
	recorded, ca := s.Identity.Record, trust.KeyFingerprint(s.Authorities.Etcd.Current)
	err := recorded.Check(ca)
	switch {
	case err == nil:
		return s.previousCAProblem()
	case errors.Is(err, etcd.ErrCADiffers):
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "the CA in %s has a different key than the one that etcd members trust: restore that Secret from a backup%s; nothing is changed until then (key %s, recorded %s)", s.Authorities.Etcd.Source, s.etcdRenewal(), short(ca), short(recorded.CA)).AsReadOnly()
	}
	return verdict.Failed(err)
}

// recordIsCurrent is done unless the record lacks members that have pods and have said who they
// are, as one that was restored from a backup does: without their pods, etcd may have no
// majority. Members that were removed are still claimed.
func (s *Stage) recordIsCurrent(ctx context.Context) verdict.Verdict {
	known := max(len(s.Identity.Members()), int(s.Identity.Record.Claimed))
	set := &appsv1.StatefulSet{}
	err := s.Live.Get(ctx, s.Key(contract.EtcdSuffix), set)
	if client.IgnoreNotFound(err) != nil {
		return verdict.Failed(err)
	}
	if err != nil || set.Spec.Replicas == nil || int(*set.Spec.Replicas) <= known {
		return done
	}
	for ordinal := known; ordinal < int(*set.Spec.Replicas); ordinal++ {
		name := contract.EtcdMember(s.Registry.Name, ordinal)
		if slices.ContainsFunc(s.Before.Etcd.Members, func(m operatorv1alpha1.EtcdMember) bool { return m.Name == name && m.ID != "" }) {
			return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "ConfigMap %s%s, the record of etcd's identity, has %d members, and etcd has %s, too: the record is older than etcd, as after it was restored from a backup; nothing is changed until a newer one is brought back, or the keys replicas, members and member-id.%s are corrected (status.etcd.members has the IDs)", s.Registry.Name, contract.IdentitySuffix, known, name, name).AsReadOnly()
		}
	}
	return done
}

// previousCAProblem says that the CA which signed before, while it is rotated, is not the one
// that members trust: a certificate of it may still be in use.
func (s *Stage) previousCAProblem() verdict.Verdict {
	recorded, ca := s.Identity.Record, s.Authorities.Etcd
	if !recorded.Generations.Previous() || recorded.AlsoCA == "" || ca.Withdrawn || trust.KeyFingerprint(ca.Also) == recorded.AlsoCA {
		return done
	}
	return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "the CA in Secret %s, which signed for etcd members before, is missing or has a different key than the one that they trust: restore that Secret from a backup; nothing is changed until then (recorded %s)",
		s.Name(contract.Generation(contract.EtcdCASuffix, recorded.Generations.Also)), short(recorded.AlsoCA)).AsReadOnly()
}

// etcdRenewal says when the first of etcd's certificates is renewed, which the
// members would not trust if another CA signed it.
func (s *Stage) etcdRenewal() string {
	var first *metav1.Time
	for _, certificate := range s.Registry.Status.Certificates {
		ofEtcd := slices.ContainsFunc(s.Authorities.EtcdLeaves(), func(l trust.Leaf) bool { return certificate.Name == s.Name(l.Suffix) })
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
