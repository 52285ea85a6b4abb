package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/clusterregistry/operator/internal/contract"
)

// Recovery returns the recovery of a lost quorum that the data of a member is for, nil where
// there is none: of its data, a new etcd is to be made before it starts. Both what is mounted
// of the record and what was passed must say so. The error is an *Undecided. A member that it
// is not about, and one whose data is anything but what the recovery begins with, is for Check.
func Recovery(m Member, passed Passed) (*contract.Recovery, error) {
	r, err := readRecord(m.IdentityDir, m.Name)
	if err != nil {
		return nil, &Undecided{err: err}
	}
	mounted, err := parseRecovery(r.recovery, fmt.Sprintf("the key %s of the ConfigMap mounted in %s", contract.RecordRecovery, m.IdentityDir))
	if err != nil {
		return nil, err
	}
	told, err := parseRecovery(passed.Recovery, "the environment variable "+RecoveryVariable)
	if err != nil {
		return nil, err
	}
	if mounted == nil && told == nil {
		return nil, nil
	}
	d, err := readData(m.DataDir)
	if err != nil || !d.exists() {
		return nil, nil //nolint:nilerr // Check reports it
	}
	agree := mounted != nil && told != nil && mounted.Recovery == told.Recovery
	switch where := fmt.Sprintf("etcd member %s (%s in the volume of claim %s)", m.Name, m.DataDir, contract.EtcdMemberClaim(m.Name)); {
	case agree && mounted.begins(m.Name, d):
		if err := m.foresee(where, r, mounted.Recovery); err != nil {
			return nil, err
		}
		return &mounted.Recovery, nil
	case !agree && (mounted.begins(m.Name, d) || told.begins(m.Name, d)):
		return nil, undecided("%s has the data of cluster %x, member ID %x, with which a lost quorum is to be recovered, but the record that is mounted and the one that was passed do not say the same (%s is %s, %s is %s): one of them is late, so etcd does not start; this container is started again. If this stays so for more than five minutes, delete this Pod",
			where, d.cluster, d.member, contract.RecordRecovery, mounted, RecoveryVariable, told)
	case !agree && told != nil && told.data.cluster == d.cluster:
		// By a record that is late, members of the etcd that is given up could form a majority.
		return nil, undecided("%s has the data of cluster %x, whose quorum was lost and is recovered with another member (%s is %s), and the record that is mounted does not say so: it is late, so etcd does not start; this container is started again",
			where, d.cluster, RecoveryVariable, told)
	}
	return nil, nil
}

// recovery is a contract.Recovery, and the identity of the data that it begins with.
type recovery struct {
	contract.Recovery
	data identity
}

// lineages is the form of the ID of data: it is the name of a directory.
var lineages = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,99}$`)

// parseRecovery reads a recovery, nil when the text is empty. The source is where the text
// comes from.
func parseRecovery(text, source string) (*recovery, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	r := &recovery{}
	err := json.Unmarshal([]byte(text), &r.Recovery)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return nil, undecided("%s does not describe the recovery of a lost quorum (%w): it is not known whether etcd may start, so it does not; the ConfigMap is the operator's, which has to repair it: a person may remove its key %s where no recovery was approved", source, err, contract.RecordRecovery)
	}
	return r, nil
}

// check reads the IDs, and fails where something is missing.
func (r *recovery) check() (err error) {
	if !lineages.MatchString(r.Lineage) {
		return fmt.Errorf("lineage %q has other characters than letters, digits and '-', or a wrong length", r.Lineage)
	}
	if r.Member == "" {
		return errors.New("it names no member")
	}
	if r.Revision < 0 {
		return fmt.Errorf("revision %d is not one that etcd can have", r.Revision)
	}
	if r.data.cluster, err = strconv.ParseUint(r.ClusterID, 16, 64); err != nil || r.data.cluster == 0 {
		return fmt.Errorf("clusterID %q is not a hexadecimal ID", r.ClusterID)
	}
	if r.data.member, err = strconv.ParseUint(r.MemberID, 16, 64); err != nil || r.data.member == 0 {
		return fmt.Errorf("memberID %q is not a hexadecimal ID", r.MemberID)
	}
	return nil
}

// begins is true where the recovery begins with the data of a member.
func (r *recovery) begins(member string, d data) bool {
	return r != nil && r.Member == member && r.data == d.identity
}

// String says what is recorded, as the object of "is".
func (r *recovery) String() string {
	if r == nil {
		return "absent"
	}
	return fmt.Sprintf("%s with member %s, cluster %s, member ID %s", r.Lineage, r.Member, r.ClusterID, r.MemberID)
}

// foresee fails where the recovered etcd would not be the recorded one: it would be refused, and
// its data would not be what it was any more.
func (m Member) foresee(where string, r record, next contract.Recovery) error {
	peer := url(m.Cluster.PeerURL, m.Name)
	cluster, member := contract.RestoredIdentity(next.Lineage, peer)
	if fmt.Sprintf("%x", r.cluster) == cluster && fmt.Sprintf("%x", r.member) == member {
		return nil
	}
	return undecided("%s is to be recovered as cluster %s, member ID %s, which etcd makes of lineage %s and the URL %s, but %s is recorded: etcd does not start, and its data is not touched; the ConfigMap mounted in %s is the operator's, which has to repair it",
		where, cluster, member, next.Lineage, peer, r, m.IdentityDir)
}
