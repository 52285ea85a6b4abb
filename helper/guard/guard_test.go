package guard

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
)

func TestDecide(t *testing.T) {
	ids := identity{cluster: 0xc1, member: 0xa1}
	for _, test := range []struct {
		reason string
		state  string
		record identity
		joins  bool
		data   data
		want   string // in the error; it may start when empty
	}{
		{reason: "first start", state: contract.StateNew},
		{reason: "restart before anything is recorded", state: contract.StateNew, data: data{identity: ids}},
		{reason: "restart of the first member after the cluster formed", state: contract.StateNew, record: ids, data: data{identity: ids}},
		{reason: "restart", state: contract.StateExisting, record: ids, data: data{identity: ids}},
		{reason: "only the cluster is recorded", state: contract.StateExisting, record: identity{cluster: ids.cluster}, data: data{identity: ids}},
		{reason: "nothing to compare with", state: contract.StateExisting, data: data{identity: ids}},

		{reason: "lost after it was recorded", state: contract.StateExisting, record: ids, want: "has no data, but cluster c1, member ID a1, is recorded"},
		{reason: "lost, the state is stale", state: contract.StateNew, record: ids, want: "Starting empty would lose or corrupt data"},
		{reason: "the cluster has formed without this member", state: contract.StateNew, record: identity{cluster: ids.cluster}, want: "has no data, but cluster c1 is recorded"},
		{reason: "only the member is recorded", state: contract.StateNew, record: identity{member: ids.member}, want: "has no data, but member ID a1 is recorded"},
		{reason: "no ID is recorded, but the cluster is not new", state: contract.StateExisting, want: `has no data, but no ID but the state "existing" is recorded`},

		{reason: "another cluster", state: contract.StateExisting, record: identity{0xc2, 0xa1}, data: data{identity: ids}, want: "has the data of cluster c1, but cluster c2, member ID a1, is recorded"},
		{reason: "another member", state: contract.StateExisting, record: identity{0xc1, 0xa2}, data: data{identity: ids}, want: "has the data of member ID a1, but cluster c1, member ID a2, is recorded"},
		{reason: "another member, no cluster to compare with", state: contract.StateNew, record: identity{member: 0xa2}, data: data{identity: ids}, want: "has the data of member ID a1, but member ID a2 is recorded"},

		{reason: "damaged", state: contract.StateExisting, record: ids, data: data{damage: errors.New("torn")}, want: "has damaged data: torn. Starting on it could lose or corrupt data (cluster c1"},
		{reason: "added anew after its data was lost", state: contract.StateExisting, record: ids, joins: true},
		{reason: "added anew, and interrupted at it", state: contract.StateExisting, record: ids, joins: true, data: data{damage: errNoLog}},
		{reason: "added anew, with its old data", state: contract.StateExisting, record: identity{0xc1, 0xa2}, joins: true, data: data{identity: ids}, want: "has the data of member ID a1"},
		{reason: "interrupted while it was made", state: contract.StateNew, data: data{damage: errNoLog}, want: ""},
		{reason: "without a log, but recorded", state: contract.StateExisting, record: ids, data: data{damage: errNoLog}, want: "has damaged data: there are files but no write-ahead log"},
		{reason: "damaged before anything is recorded", state: contract.StateNew, data: data{damage: errors.New("torn")}, want: "its first start was interrupted and nothing is lost: delete this claim"},
	} {
		found, err := decide("fleet-etcd-0", "/data/etcd", record{identity: test.record, state: test.state, joins: test.joins}, test.data)
		if test.want == "" {
			if err != nil || !strings.Contains(found, "fleet-etcd-0") || strings.Contains(found, "\n") {
				t.Errorf("%s: %q, %v; want it to start", test.reason, found, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: it starts: %s", test.reason, found)
			continue
		}
		for _, want := range []string{test.want, "claim data-fleet-etcd-0"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in: %v", test.reason, want, err)
			}
		}
	}
}

// TestErrorFits holds the longest error with the longest names to what kubelet
// keeps of a container's output.
func TestErrorFits(t *testing.T) {
	long := strings.Repeat("m", 253)
	ids := identity{1<<64 - 1, 1<<64 - 1}
	for _, d := range []data{{}, {identity: identity{1 << 63, 1 << 63}}, {damage: errors.New(strings.Repeat("d", 600))}} {
		_, err := decide(long, "/data/etcd", record{identity: ids, state: contract.StateExisting}, d)
		if err == nil {
			t.Errorf("it starts on %+v", d)
		} else if n := len("error: " + err.Error() + "\n"); n > 2048 {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestCheckKinds tells what only has to wait, or is wrong with the record, from data that is
// lost: the operator reports the latter alone as such.
func TestCheckKinds(t *testing.T) {
	for _, test := range []struct {
		reason    string
		keys      map[string]string
		data      bool // of cluster c1, member a1
		undecided bool
		lost      bool
	}{
		{"there is no record", nil, false, true, false},
		{"the record is damaged", map[string]string{contract.RecordState: "existing", contract.RecordCluster: "x"}, false, true, false},
		{"it is to form an etcd of others", map[string]string{contract.RecordState: "new", contract.RecordMembers: "m1"}, false, true, false},
		{"it joins, and is alone", map[string]string{contract.RecordState: "existing", contract.RecordCluster: "c1", "member-id.m0": "a1", contract.RecordJoining: "m0", contract.RecordMembers: "m0"}, false, true, false},
		{"it has lost its data", map[string]string{contract.RecordState: "existing", contract.RecordCluster: "c1", "member-id.m0": "a1", contract.RecordMembers: "m0"}, false, false, true},
		{"it has the data of another member", map[string]string{contract.RecordState: "existing", contract.RecordCluster: "c1", "member-id.m0": "a2", contract.RecordMembers: "m0"}, true, false, false},
	} {
		dir := t.TempDir()
		for key, value := range test.keys {
			write(t, filepath.Join(dir, key), []byte(value))
		}
		dataDir := t.TempDir()
		if test.data {
			write(t, filepath.Join(dataDir, "member/wal/0000000000000000-0000000000000000.wal"), segment(7, identity{cluster: 0xc1, member: 0xa1}))
		}
		_, err := Check(t.Context(), Member{Name: "m0", DataDir: dataDir, IdentityDir: dir}, Passed{State: test.keys[contract.RecordState], Joining: test.keys[contract.RecordJoining]})
		var waits *Undecided
		if joins := test.keys[contract.RecordJoining] != ""; errors.As(err, &waits) && waits.Empty != joins {
			t.Errorf("%s: it is empty, and is to be: %t", test.reason, waits.Empty)
		}
		if undecided, refused := errors.As(err, new(*Undecided)), errors.As(err, new(*Refusal)); undecided != test.undecided || refused == undecided {
			t.Errorf("%s: undecided: %t, refused: %t: %v", test.reason, undecided, refused, err)
		}
		var refusal *Refusal
		if errors.As(err, &refusal) && refusal.Lost != test.lost {
			t.Errorf("%s: lost: %t: %v", test.reason, refusal.Lost, err)
		}
	}
}
