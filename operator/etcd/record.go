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
	"github.com/clusterregistry/operator/operator/generation"
)

// The keys of the record that only the operator reads. The guard in each member's pod
// reads the others.
const (
	keyReplicas    = "replicas"
	keyCA          = "ca"
	keyGenerations = "ca-generations"
	keyAlsoCA      = "ca-also"
	keyServingCA   = "ca-serving"
	keyRestored    = "restored"
	keyRecovered   = "recovered"
	keyClientCA    = "ca-client"
	keyRelease     = "release"
	keyEtcdVersion = "etcd-version"
	keyEtcdRelease = "etcd-release"
	keyKeys        = "encryption"
	keyKeyIDs      = "encryption-keys"
	keyStoredUnder = "encryption-stored"
	keyVisibility  = "visibility"

	keyTarget       = "target"
	keyClaimed      = "claimed"
	keyEndpoints    = "endpoints"
	keyLeaving      = "leaving"
	keyLeavingClaim = "leaving-claim"
	keyKept         = "kept-volumes"
	keyRecreating   = "recreating"

	keyNewest   = "newest-revision"
	keyWentBack = "went-back"
)

// mostMembers is more than any etcd of a registry has: what a person wrote into the
// record decides how many members are rendered.
const mostMembers = 9

// ErrCADiffers is why the etcd that was recorded can't be the desired one.
var ErrCADiffers = errors.New("another CA of etcd is recorded")

// Record is what is recorded of a registry's own etcd, in a ConfigMap that outlives the
// registry as etcd's volumes do.
type Record struct {
	// Identity is empty until etcd has formed.
	Identity
	// InitialClusterState is contract.StateNew until etcd has formed, and
	// contract.StateExisting from then on.
	InitialClusterState string
	// Replicas is how many pods the members have, and Names are theirs, by which the guard
	// has members find each other.
	Replicas int32
	Names    []string
	// Target is how many members were last aimed at, Claimed how many ordinals, from 0 on,
	// have claims that are of members or of pods that the operator asked for, and Endpoints
	// how many members the servers use. They are Replicas but for a change of size.
	Target, Claimed, Endpoints int32
	// Leaving is the member that is being removed, and LeavingClaim the UID of its claim.
	// Both are empty when there is none.
	Leaving, LeavingClaim string
	// Kept are the old volumes of members that were replaced, the oldest first, which outlive
	// their claims.
	Kept []KeptVolume
	// Recreating is the UID of the StatefulSet that is deleted without its pods, to be made
	// again, empty when none is.
	Recreating string
	// CA is the fingerprint of the key of the CA that signs for the members, and that they
	// trust. AlsoCA is that of the one that signed before it, as long as it is still trusted,
	// and else empty.
	CA, AlsoCA string
	// Generations are those of the CA that are in use. The zero value is the first.
	Generations generation.InUse
	// ServingCA and ClientCA are copies of what is recorded elsewhere of the registry's other
	// CAs, for where that gets lost. What they say is not known here.
	ServingCA, ClientCA string
	// Keys is the digest of the keys with which servers encrypt what they store, and KeyIDs
	// are the names of these, the one that writes first. Both are empty as long as nothing
	// was ever encrypted, and after that was taken back.
	Keys   string
	KeyIDs []string
	// StoredUnder is the name of the key that everything was found to be stored under, when
	// it was last looked; empty for none.
	StoredUnder string
	// Visibility is the ID that an approval has to name to have all clusters shown, as long as
	// servers hide some; else it is empty.
	Visibility string
	// Release is the newest release whose servers may have written, and EtcdVersion the
	// newest version of etcd, such as v3.7.3, that a member has run: what both read is the
	// data's format. They are empty until known.
	Release, EtcdVersion string
	// EtcdRelease is the release whose etcd, helper and layout a member has run with:
	// they stay when the servers of an older one return. It is empty until known.
	EtcdRelease string
	// Joining is the member that is being added: it may start without any data as long as
	// it is a learner that was never started. It is empty when there is none.
	Joining string
	// Lineage is the ID of the data, by which its backups are known. It is empty as long as
	// none was taken.
	Lineage string
	// Restored says from which backup the data began, nil for none. It is Pending until etcd
	// has served it.
	Restored *Restored
	// Newest is the newest revision that etcd was at, by a few minutes, and WentBack says that it
	// was found at an older one; nil when it was not, or a person has decided.
	Newest   Newest
	WentBack *WentBack
	// Recovered says how the last lost quorum is, or was, recovered from; nil for none.
	Recovered *Recovered
}

// KeptVolume is the old volume of a member that was replaced.
type KeptVolume struct {
	// Name is that of the PersistentVolume, and Claim the UID of the claim that it was bound
	// to: one that is bound to another claim by now has other data.
	Name, Claim string
	// Policy is the reclaim policy that it had, and Cluster the ID of the etcd cluster whose
	// data it has: to another one, as after a restore by hand, it may be the newest copy.
	Policy, Cluster string
}

// mostKept is how many kept volumes are recorded: the oldest ones are left to people then.
const mostKept = 100

// NewRecord returns the record to begin with. Only where there was never any data may
// etcd form as a new cluster: a record that got lost is made up for from what else is
// known of the etcd, and where there are volumes (hasData) their members must have data.
// Members that are known without an ID are left out.
func NewRecord(replicas int32, ca string, known Identity, hasData bool) *Record {
	r := &Record{InitialClusterState: contract.StateNew, Replicas: replicas, Target: replicas, Claimed: replicas, Endpoints: replicas, CA: ca, Identity: Identity{Members: map[string]string{}}}
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
		Joining: data[contract.RecordJoining], Lineage: data[contract.RecordLineage], Identity: Identity{ClusterID: data[contract.RecordCluster], Members: map[string]string{}},
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
	r.Leaving, r.LeavingClaim = data[keyLeaving], data[keyLeavingClaim]
	if r.Joining != "" && r.Leaving != "" {
		return nil, fmt.Errorf("%s is %q while %s is %q: remove the key %s if that member is still in etcd's list, the other one if it is not", contract.RecordJoining, r.Joining, keyLeaving, r.Leaving, keyLeaving)
	}
	if r.Restored, err = parseRestored(data[keyRestored], data[contract.RecordRestore], r.Lineage); err != nil {
		return nil, err
	}
	if r.Recovered, err = parseRecovered(data[keyRecovered]); err != nil {
		return nil, err
	}
	if err = r.parseNewest(data); err != nil {
		return nil, err
	}
	r.Kept, r.Recreating = parseKept(data[keyKept]), data[keyRecreating]
	r.Keys, r.StoredUnder, r.Visibility = data[keyKeys], data[keyStoredUnder], data[keyVisibility]
	if text := data[keyKeyIDs]; text != "" {
		r.KeyIDs = strings.Split(text, contract.RecordSeparator)
	}
	r.AlsoCA, r.ServingCA, r.ClientCA = data[keyAlsoCA], data[keyServingCA], data[keyClientCA]
	if text := data[keyGenerations]; text != "" {
		if r.Generations, err = generation.Parse(text); err != nil {
			return nil, fmt.Errorf("%s is %w; status.certificates says which generation signs", keyGenerations, err)
		}
	}
	for key, number := range map[string]*int32{keyTarget: &r.Target, keyClaimed: &r.Claimed, keyEndpoints: &r.Endpoints} {
		if *number, err = parseNumber(key, data[key], r.Replicas); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// parseNumber reads a number of members, which is that of all where there is no text.
func parseNumber(key, text string, replicas int32) (int32, error) {
	if text == "" {
		return replicas, nil
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil || number < 1 || number > mostMembers {
		return 0, fmt.Errorf("%s is %q and not a number of members: remove the key, which makes it %d", key, text, replicas)
	}
	return int32(number), nil
}

// parseKept reads the volumes that were kept. What is not one is left out: it is a volume that
// stays, and no reason for etcd not to be operated.
func parseKept(text string) (out []KeptVolume) {
	for entry := range strings.SplitSeq(text, contract.RecordSeparator) {
		if parts := strings.Split(entry, keptSeparator); len(parts) == 4 && !slices.Contains(parts, "") {
			out = append(out, KeptVolume{Name: parts[0], Claim: parts[1], Policy: parts[2], Cluster: parts[3]})
		}
	}
	return out
}

// keptSeparator is between what is recorded of a volume that was kept.
const keptSeparator = "="

// kept returns the volumes that were kept as they are recorded.
func (r *Record) kept() string {
	var out []string
	for _, volume := range r.Kept[max(0, len(r.Kept)-mostKept):] {
		out = append(out, strings.Join([]string{volume.Name, volume.Claim, volume.Policy, volume.Cluster}, keptSeparator))
	}
	return strings.Join(out, contract.RecordSeparator)
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
// is nil when nothing was recorded: what is no longer so has to be written as empty, since
// a person may have written it there.
func (r *Record) Data(previous *Record) map[string]string {
	data := map[string]string{
		contract.RecordState: r.InitialClusterState, contract.RecordCluster: r.ClusterID, keyCA: r.CA, keyReplicas: strconv.Itoa(int(r.Replicas)),
	}
	if previous != nil {
		for key := range previous.optional() {
			data[key] = ""
		}
	}
	maps.Copy(data, r.optional())
	return data
}

// optional returns the keys that are there only where they have a value.
func (r *Record) optional() map[string]string {
	data := map[string]string{
		keyRelease: r.Release, keyEtcdVersion: r.EtcdVersion, keyEtcdRelease: r.EtcdRelease,
		contract.RecordMembers: strings.Join(r.Names, contract.RecordSeparator), contract.RecordJoining: r.Joining, keyLeaving: r.Leaving, keyLeavingClaim: r.LeavingClaim, keyKept: r.kept(), keyRecreating: r.Recreating, contract.RecordLineage: r.Lineage, keyAlsoCA: r.AlsoCA, keyServingCA: r.ServingCA, keyClientCA: r.ClientCA,
		keyKeys: r.Keys, keyStoredUnder: r.StoredUnder, keyKeyIDs: strings.Join(r.KeyIDs, contract.RecordSeparator), keyVisibility: r.Visibility,
		keyTarget: r.number(r.Target), keyClaimed: r.number(r.Claimed), keyEndpoints: r.number(r.Endpoints),
	}
	if r.Recovered != nil {
		data[keyRecovered], data[contract.RecordRecovery] = encode(r.Recovered), r.Recovered.guard()
	}
	if r.Restored != nil {
		data[keyRestored] = encode(r.Restored)
		if r.Restored.Pending() {
			data[contract.RecordRestore] = r.Lineage
		}
	}
	if r.Newest != (Newest{}) {
		data[keyNewest] = encode(r.Newest)
	}
	if r.WentBack != nil {
		data[keyWentBack] = encode(r.WentBack)
	}
	if r.Generations != (generation.InUse{}) {
		data[keyGenerations] = r.Generations.String()
	}
	for name, id := range r.Members {
		data[contract.RecordMember+name] = id
	}
	maps.DeleteFunc(data, func(_, value string) bool { return value == "" })
	return data
}

// number returns a number of members as it is recorded: not at all where it is that of all.
func (r *Record) number(members int32) string {
	if members == r.Replicas || members == 0 {
		return ""
	}
	return strconv.Itoa(int(members))
}

// Changing reports whether a member is recorded that joins or leaves, or the StatefulSet is
// deleted, to be made again. It is no time to stop. Of no record, nothing changes.
func (r *Record) Changing() bool {
	return r != nil && (r.Joining != "" || r.Leaving != "" || r.Recreating != "")
}

// Check returns ErrCADiffers unless the recorded CA has the key of a fingerprint.
func (r *Record) Check(ca string) error {
	if r.CA != ca {
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
// members are not bound. It returns false, and the record as it is, when nothing is new.
func (r *Record) Learn(seen Observation) (*Record, bool) {
	learned := *r
	// A record that was made up for from the status may lack members, and so may one of
	// which a member joins or leaves.
	changing := r.Joining != "" || r.Leaving != ""
	if formed, ok := seen.State.Identity(); ok && !changing && (r.ClusterID == "" || len(r.Members) < len(formed.Members)) {
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
	if learned.ClusterID == r.ClusterID && len(learned.Members) == len(r.Members) && learned.EtcdVersion == r.EtcdVersion && learned.EtcdRelease == r.EtcdRelease {
		return r, false
	}
	return &learned, true
}
