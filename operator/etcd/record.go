package etcd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/clusterregistry/operator/internal/contract"
)

// The keys of the record that only the operator reads. The guard in each member's pod
// reads the others.
const (
	keyReplicas    = "replicas"
	keyCA          = "ca"
	keyRelease     = "release"
	keyEtcdVersion = "etcd-version"
	keyEtcdRelease = "etcd-release"
)

// mostMembers is more than any etcd of a registry has: what a person wrote into the
// record decides how many members are rendered.
const mostMembers = 9

// ErrReplicasDiffer and ErrCADiffers are why the etcd that was recorded can't be the
// desired one.
var (
	ErrReplicasDiffer = errors.New("another number of etcd members is recorded")
	ErrCADiffers      = errors.New("another CA of etcd is recorded")
)

// Record is what is recorded of a registry's own etcd, in a ConfigMap that outlives the
// registry as etcd's volumes do.
type Record struct {
	// Identity is empty until etcd has formed.
	Identity
	// InitialClusterState is contract.StateNew until etcd has formed, and
	// contract.StateExisting from then on.
	InitialClusterState string
	// Replicas is how many members there are, and Names are theirs, by which the guard has
	// members find each other. Records of operators before v0.4.0 have no names.
	Replicas int32
	Names    []string
	// CA is the fingerprint of the key of the CA that the members trust.
	CA string
	// Release is the newest release whose servers may have written, and EtcdVersion the
	// newest version of etcd, such as v3.7.3, that a member has run: what both read is the
	// data's format. They are empty until known.
	Release, EtcdVersion string
	// EtcdRelease is the release whose etcd, helper and layout a member has run with:
	// they stay when the servers of an older one return. It is empty until known.
	EtcdRelease string
	// Joining is the member whose data was lost, and that a person has added to the
	// cluster again: it may start without any data as long as it is a learner that was
	// never started. It is empty when there is none.
	Joining string
}

// NewRecord returns the record to begin with. Only where there was never any data may
// etcd form as a new cluster: a record that got lost is made up for from what else is
// known of the etcd, and where there are volumes (hasData) their members must have data.
// Members that are known without an ID are left out.
func NewRecord(replicas int32, ca string, known Identity, hasData bool) *Record {
	r := &Record{InitialClusterState: contract.StateNew, Replicas: replicas, CA: ca, Identity: Identity{Members: map[string]string{}}}
	if known.ClusterID != "" {
		r.ClusterID = known.ClusterID
		for name, id := range known.Members {
			if id != "" {
				r.Members[name] = id
			}
		}
	}
	if r.ClusterID != "" || hasData {
		r.InitialClusterState = contract.StateExisting
	}
	return r
}

// ParseRecord reads a ConfigMap's data, which people can edit. What can't be right is
// an error that says what to set: the guard, too, would not let members start by it.
// Keys that it does not know are left alone.
func ParseRecord(data map[string]string) (*Record, error) {
	r := &Record{
		InitialClusterState: data[contract.RecordState], CA: data[keyCA], Release: data[keyRelease], EtcdVersion: data[keyEtcdVersion], EtcdRelease: data[keyEtcdRelease],
		Joining: data[contract.RecordJoining], Identity: Identity{ClusterID: data[contract.RecordCluster], Members: map[string]string{}},
	}
	if r.InitialClusterState != contract.StateNew && r.InitialClusterState != contract.StateExisting {
		return nil, fmt.Errorf("%s is %q: set it to %q, unless this etcd never formed (then %q)", contract.RecordState, r.InitialClusterState, contract.StateExisting, contract.StateNew)
	}
	if r.ClusterID != "" && !validID(r.ClusterID) {
		return nil, fmt.Errorf("%s is %q and not the ID of a cluster: set it to the one in status.etcd.clusterID", contract.RecordCluster, r.ClusterID)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		name, is := strings.CutPrefix(key, contract.RecordMember)
		if !is || data[key] == "" {
			continue // not recorded yet
		}
		if !validID(data[key]) {
			return nil, fmt.Errorf("%s is %q and not the ID of a member: set it to the one in status.etcd.members", key, data[key])
		}
		r.Members[name] = data[key]
	}
	replicas, err := strconv.ParseInt(data[keyReplicas], 10, 32)
	if err != nil || replicas < 1 || replicas > mostMembers {
		return nil, fmt.Errorf("%s is %q and not a number of members: set it to that of the claims data-...-etcd-N", keyReplicas, data[keyReplicas])
	}
	r.Replicas = int32(replicas)
	if r.Names, err = parseNames(data[contract.RecordMembers], r.Replicas); err != nil {
		return nil, err
	}
	return r, nil
}

// parseNames reads the names of members, none where there is no text.
func parseNames(text string, replicas int32) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	names := strings.Split(text, contract.RecordSeparator)
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) != int(replicas) || len(distinct) != len(names) || distinct[0] == "" {
		return nil, fmt.Errorf("%s is %q and not the names of %d members: correct the key of the two (%s, %s) that was changed; if the first is removed, the operator writes it again", contract.RecordMembers, text, replicas, contract.RecordMembers, keyReplicas)
	}
	return names, nil
}

// validID reports whether a text is an ID as etcdctl prints it, and the guard
// reads it.
func validID(text string) bool {
	id, err := strconv.ParseUint(text, 16, 64)
	return err == nil && strconv.FormatUint(id, 16) == text && id != 0
}

// Data returns the record as a ConfigMap's data. It takes the place of previous, which
// is nil when nothing was recorded: a member that is no longer joining has to be
// written as none, since a person wrote it there.
func (r *Record) Data(previous *Record) map[string]string {
	data := map[string]string{
		contract.RecordState: r.InitialClusterState, contract.RecordCluster: r.ClusterID, keyCA: r.CA, keyReplicas: strconv.Itoa(int(r.Replicas)),
	}
	for name, id := range r.Members {
		data[contract.RecordMember+name] = id
	}
	for key, value := range map[string]string{keyRelease: r.Release, keyEtcdVersion: r.EtcdVersion, keyEtcdRelease: r.EtcdRelease} {
		if value != "" {
			data[key] = value
		}
	}
	if len(r.Names) > 0 {
		data[contract.RecordMembers] = strings.Join(r.Names, contract.RecordSeparator)
	}
	if r.Joining != "" || previous != nil && previous.Joining != "" {
		data[contract.RecordJoining] = r.Joining
	}
	return data
}

// Check compares the record with what is desired: the number of members, and the
// fingerprint of the CA's key. It returns ErrReplicasDiffer or ErrCADiffers, the first
// that holds, or nil.
func (r *Record) Check(replicas int32, ca string) error {
	switch {
	case r.Replicas != replicas:
		return ErrReplicasDiffer
	case r.CA != ca:
		return ErrCADiffers
	}
	return nil
}

// Observation is what a record is completed from.
type Observation struct {
	State State
	// Versions are those of etcd, such as v3.7.3, that members ran when they answered
	// last. Empty ones do not count.
	Versions []string
	// Current are the names of the members whose pods are of Release.
	Current []string
	Release string
}

// Learn returns the record with what is new: who the members are as soon as all have
// said it, the newest version of etcd among them, and the release that they are of as
// soon as one of its pods has said anything: to a release whose etcd never started, the
// members are not bound. A member that joined is one like all others as soon as it
// serves. It returns false, and the record as it is, when nothing is new.
func (r *Record) Learn(seen Observation) (*Record, bool) {
	learned := *r
	// A record that was made up for from the status may lack members.
	if formed, ok := seen.State.Identity(); ok && (r.ClusterID == "" || len(r.Members) < len(formed.Members)) {
		learned.InitialClusterState, learned.Identity = contract.StateExisting, formed
	}
	for _, version := range seen.Versions {
		if semver.Compare(version, learned.EtcdVersion) > 0 {
			learned.EtcdVersion = version
		}
	}
	for _, member := range seen.State.Members {
		if member.ID != "" && slices.Contains(seen.Current, member.Name) {
			learned.EtcdRelease = seen.Release
		}
	}
	if seen.State.Joined(learned.Identity, learned.Joining) {
		learned.Joining = ""
	}
	if learned.ClusterID == r.ClusterID && len(learned.Members) == len(r.Members) && learned.EtcdVersion == r.EtcdVersion && learned.EtcdRelease == r.EtcdRelease && learned.Joining == r.Joining {
		return r, false
	}
	return &learned, true
}
