package clusterregistry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// The keys of the record of etcd's identity: a ConfigMap that outlives the
// registry, as etcd's volumes do. The guard in each member's pod reads it.
const (
	keyState     = contract.RecordState
	keyCluster   = contract.RecordCluster
	keyMember    = contract.RecordMember
	keyReplicas  = "replicas"
	keyCA        = "ca"
	keyRelease   = "release"
	keyEtcd      = "etcd-version"
	keyMembersOf = "etcd-release"
	keyJoining   = contract.RecordJoining

	stateNew      = contract.StateNew
	stateExisting = contract.StateExisting
)

// identity is what is recorded of an etcd: empty IDs until it has formed.
type identity struct {
	etcd.Identity
	state    string
	replicas int32
	// ca is the fingerprint of the CA's key.
	ca string
	// release is the newest release whose servers may have written, and etcd the
	// newest version of etcd that a member has run: what both read is the data's form.
	release, etcd string
	// membersOf is the release whose etcd, helper and layout a member has run with:
	// they stay when the servers of an older one return.
	membersOf string
	// joining is the member whose data was lost, and that a person has added to the
	// cluster again: it may start without any data, once.
	joining string
	// unmarked means that the record has lost labels by which the operator knows it,
	// or the annotation that retains it.
	unmarked bool
}

// readIdentity returns the record, nil when there is none.
func (r *Reconciler) readIdentity(ctx context.Context, s *scope) (*identity, error) {
	record := &corev1.ConfigMap{}
	// Not from the cache: what is behind, or lost its labels, must not look like an
	// etcd that never was.
	err := r.Live.Get(ctx, s.key(contract.IdentitySuffix), record)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, err := parseRecord(record.Data)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s, the record of etcd's identity, is damaged: %w", record.Name, err)
	}
	id.unmarked = !marked(record, s) && apply.Belongs(record, s.owner())
	return id, nil
}

// mostMembers is more than any etcd of a registry has: what a person wrote into the
// record decides how many members are rendered.
const mostMembers = 9

// parseRecord reads a record, which people can edit. What can't be right is an
// error: the guard, too, would hold members back by it.
func parseRecord(data map[string]string) (*identity, error) {
	id := &identity{state: data[keyState], ca: data[keyCA], release: data[keyRelease], etcd: data[keyEtcd], membersOf: data[keyMembersOf], joining: data[keyJoining], Identity: etcd.Identity{ClusterID: data[keyCluster], Members: map[string]string{}}}
	if id.state != stateNew && id.state != stateExisting {
		return nil, fmt.Errorf("%s is %q: set it to %q, unless this etcd never formed (then %q)", keyState, id.state, stateExisting, stateNew)
	}
	if id.ClusterID != "" && !validID(id.ClusterID) {
		return nil, fmt.Errorf("%s is %q and not the ID of a cluster: set it to the one in status.etcd.clusterID", keyCluster, id.ClusterID)
	}
	for key, value := range data {
		name, is := strings.CutPrefix(key, keyMember)
		if !is || value == "" {
			continue // not recorded yet
		}
		if !validID(value) {
			return nil, fmt.Errorf("%s is %q and not the ID of a member: set it to the one in status.etcd.members", key, value)
		}
		id.Members[name] = value
	}
	replicas, err := strconv.ParseInt(data[keyReplicas], 10, 32)
	if err != nil || replicas < 1 || replicas > mostMembers {
		return nil, fmt.Errorf("%s is %q and not a number of members: set it to that of the claims data-...-etcd-N", keyReplicas, data[keyReplicas])
	}
	id.replicas = int32(replicas)
	return id, nil
}

// validID reports whether a text is an ID as etcdctl prints it, and the guard
// reads it.
func validID(text string) bool {
	id, err := strconv.ParseUint(text, 16, 64)
	return err == nil && strconv.FormatUint(id, 16) == text && id != 0
}

// newIdentity returns the record to begin with. Only where there was never any
// data may etcd form anew: a record that got lost is made up for from the status,
// and where there are volumes their members must have data.
func newIdentity(s *scope) *identity {
	id := &identity{state: stateNew, replicas: s.registry.Spec.Etcd.Replicas, ca: trust.KeyFingerprint(s.trust.Etcd), Identity: etcd.Identity{Members: map[string]string{}}}
	if known := s.before.Etcd; known.ClusterID != "" {
		id.ClusterID = known.ClusterID
		for _, member := range known.Members {
			if member.ID != "" {
				id.Members[member.Name] = member.ID
			}
		}
	}
	if id.ClusterID != "" || len(s.volumes.Members) > 0 {
		id.state = stateExisting
	}
	return id
}

// memberNames returns the names of the members that a registry's own etcd has: as many
// as are recorded, whatever the spec asks for, and what the spec asks for where there
// is no record yet.
func memberNames(registry *operatorv1alpha1.ClusterRegistry, recorded *identity) []string {
	members := registry.Spec.Etcd.Replicas
	if recorded != nil {
		members = recorded.replicas
	}
	var out []string
	for ordinal := range members {
		out = append(out, contract.EtcdMember(registry.Name, int(ordinal)))
	}
	return out
}

// writeIdentity records an identity. It is made for good: the finalizer removes
// it when nothing is to be retained.
func (r *Reconciler) writeIdentity(ctx context.Context, s *scope, id *identity) error {
	record := &corev1.ConfigMap{ObjectMeta: s.recordMeta(), Data: map[string]string{
		keyState: id.state, keyCluster: id.ClusterID, keyCA: id.ca, keyReplicas: strconv.Itoa(int(id.replicas)),
	}}
	record.APIVersion, record.Kind = "v1", "ConfigMap"
	for name, value := range id.Members {
		record.Data[keyMember+name] = value
	}
	for key, value := range map[string]string{keyRelease: id.release, keyEtcd: id.etcd, keyMembersOf: id.membersOf} {
		if value != "" {
			record.Data[key] = value
		}
	}
	if id.joining != "" || s.identity != nil && s.identity.joining != "" {
		// Empty, it takes the place of what a person wrote there.
		record.Data[keyJoining] = id.joining
	}
	object, err := toUnstructured(record)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, s, object); err != nil {
		return err
	}
	s.identity = id
	return nil
}

// learn records who the members are as soon as all have said it, the newest
// version of etcd among them, and the release that they are of as soon as one of
// the current pods has said anything: to a release whose etcd never started, the
// members are not bound. A member that joined is one like all others as soon as it
// serves. It returns whether anything was new. In a read-only pass
// it waits for another one.
func (r *Reconciler) learn(ctx context.Context, s *scope, current []string) (learned bool, err error) {
	if s.readOnly {
		return false, nil
	}
	id := *s.identity
	// A record that was made up for from the status may lack members.
	if formed, ok := s.etcdState.Identity(); ok && (id.ClusterID == "" || len(id.Members) < len(formed.Members)) {
		id = *id.recorded(formed)
	}
	for _, member := range s.registry.Status.Etcd.Members {
		if semver.Compare(member.Version, id.etcd) > 0 {
			id.etcd = member.Version
		}
	}
	for _, member := range s.etcdState.Members {
		if member.ID != "" && slices.Contains(current, member.Name) {
			id.membersOf = s.release.Members.Release
		}
	}
	if s.etcdState.Joined(id.Identity, id.joining) {
		id.joining = ""
	}
	if id.ClusterID == s.identity.ClusterID && len(id.Members) == len(s.identity.Members) && id.etcd == s.identity.etcd && id.membersOf == s.identity.membersOf && id.joining == s.identity.joining {
		return false, nil
	}
	return true, r.writeIdentity(ctx, s, &id)
}

// recordRelease records the release whose servers write, or will.
func (r *Reconciler) recordRelease(ctx context.Context, s *scope, release string) error {
	if s.identity == nil || s.identity.release == release {
		return nil
	}
	id := *s.identity
	id.release = release
	return r.writeIdentity(ctx, s, &id)
}

// problem returns why the etcd that was recorded can't be this registry's, or nil.
func (id *identity) problem(s *scope) verdict.Verdict {
	if wanted := s.registry.Spec.Etcd.Replicas; id.replicas != wanted {
		what := fmt.Sprintf("etcd has %d members, and changing that is not supported yet: set spec.etcd.replicas back to %d", id.replicas, id.replicas)
		if !s.installed() {
			what = fmt.Sprintf("there is retained data of a registry of this name whose etcd has %d members: delete this ClusterRegistry and apply it again with spec.etcd.replicas %d, which takes the data over; or, to begin without that data, delete ConfigMap %s and the PersistentVolumeClaims of %s%s",
				id.replicas, id.replicas, s.registry.Name+contract.IdentitySuffix, s.registry.Name, contract.EtcdSuffix)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonReplicasDiffer, "%s", what).AsReadOnly()
	}
	if ca := trust.KeyFingerprint(s.trust.Etcd); id.ca != ca {
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "the CA in Secret %s%s has another key than the one that etcd's members trust: restore that Secret from a backup%s; nothing is changed until then (key %s, recorded %s)", s.registry.Name, contract.EtcdCASuffix, s.etcdRenewal(), short(ca), short(id.ca)).AsReadOnly()
	}
	return done
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
	return fmt.Sprintf(" before %s, when the first certificate of etcd is renewed, which they would refuse", first.UTC().Format(time.RFC3339))
}

// recorded returns an identity with all that a formed etcd said of itself.
func (id *identity) recorded(formed etcd.Identity) *identity {
	out := *id
	out.state, out.ClusterID, out.Members = stateExisting, formed.ClusterID, maps.Clone(formed.Members)
	return &out
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
