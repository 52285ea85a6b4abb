package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterregistry/operator/internal/contract"
)

// record is what the operator recorded about a member.
type record struct {
	identity
	state string
	// joins is true of a member that etcd was told to expect without data.
	joins bool
	// members are the names of the members that etcd has, or that form a new one.
	members []string
	// recovery is what is recorded of the recovery of a lost quorum, empty for none.
	recovery string
}

// readRecord reads a mounted ConfigMap, whose keys, those of the contract, are files.
func readRecord(dir, member string) (record, error) {
	r := record{}
	var err error
	if r.state, err = readKey(dir, contract.RecordState); err != nil {
		return record{}, err
	}
	if r.state != contract.StateNew && r.state != contract.StateExisting {
		return record{}, fmt.Errorf("there is no %s %q or %q in %s (found: %q): it is not known whether etcd member %s had data, so it does not start; the ConfigMap mounted there is the operator's, which has to repair it",
			contract.RecordState, contract.StateNew, contract.StateExisting, dir, r.state, member)
	}
	if r.cluster, err = readID(dir, contract.RecordCluster); err != nil {
		return record{}, err
	}
	if r.member, err = readID(dir, contract.RecordMember+member); err != nil {
		return record{}, err
	}
	joining, err := readKey(dir, contract.RecordJoining)
	r.joins = joining == member
	if err != nil {
		return record{}, err
	}
	if r.recovery, err = readKey(dir, contract.RecordRecovery); err != nil {
		return record{}, err
	}
	members, err := readKey(dir, contract.RecordMembers)
	if members != "" {
		r.members = strings.Split(members, contract.RecordSeparator)
	}
	return r, err
}

// others returns the members that are recorded without one of them.
func (r record) others(member string) []string {
	return slices.DeleteFunc(slices.Clone(r.members), func(name string) bool { return name == member })
}

// restrict takes back what the mounted record allows and the one that was passed
// to the container does not: one of them is late.
func (r *record) restrict(member string, passed Passed) {
	if passed.State == "" {
		return
	}
	if passed.State != contract.StateNew {
		r.state = contract.StateExisting
	}
	r.joins = r.joins && passed.Joining == member
}

// mayStartEmpty is true where data was never recorded, and of a member that a
// person has added to the cluster again.
func (r record) mayStartEmpty() bool {
	return r.state == contract.StateNew && r.identity == identity{} || r.state == contract.StateExisting && r.joins
}

// role is what a member is that may start without data.
func (r record) role() string {
	if r.joins {
		return "a member that was added again"
	}
	return "a member of a new cluster"
}

// String says what is recorded, as the subject of "is recorded".
func (r record) String() string {
	switch {
	case r.cluster != 0 && r.member != 0:
		return fmt.Sprintf("cluster %x, member ID %x,", r.cluster, r.member)
	case r.cluster != 0:
		return fmt.Sprintf("cluster %x", r.cluster)
	case r.member != 0:
		return fmt.Sprintf("member ID %x", r.member)
	}
	return fmt.Sprintf("no ID but the state %q", r.state)
}

func readID(dir, key string) (uint64, error) {
	text, err := readKey(dir, key)
	if err != nil || text == "" {
		return 0, err
	}
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%s in %s is %q, which is not a hexadecimal ID such as 8e9e05c52164694d; the ConfigMap mounted there is the operator's, which has to repair it", key, dir, text)
	}
	return id, nil
}

// readKey returns the value of a key, "" when it is absent.
func readKey(dir, key string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read what is recorded about this etcd member: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
