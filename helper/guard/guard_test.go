package guard

import (
	"errors"
	"strings"
	"testing"
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
		{reason: "first start", state: stateNew},
		{reason: "restart before anything is recorded", state: stateNew, data: data{identity: ids}},
		{reason: "restart of the first member after the cluster formed", state: stateNew, record: ids, data: data{identity: ids}},
		{reason: "restart", state: stateExisting, record: ids, data: data{identity: ids}},
		{reason: "only the cluster is recorded", state: stateExisting, record: identity{cluster: ids.cluster}, data: data{identity: ids}},
		{reason: "nothing to compare with", state: stateExisting, data: data{identity: ids}},

		{reason: "lost after it was recorded", state: stateExisting, record: ids, want: "has no data, but cluster c1, member ID a1, is recorded"},
		{reason: "lost, the state is stale", state: stateNew, record: ids, want: "Starting empty would lose or corrupt data"},
		{reason: "the cluster has formed without this member", state: stateNew, record: identity{cluster: ids.cluster}, want: "has no data, but cluster c1 is recorded"},
		{reason: "only the member is recorded", state: stateNew, record: identity{member: ids.member}, want: "has no data, but member ID a1 is recorded"},
		{reason: "no ID is recorded, but the cluster is not new", state: stateExisting, want: `has no data, but no ID but the state "existing" is recorded`},

		{reason: "another cluster", state: stateExisting, record: identity{0xc2, 0xa1}, data: data{identity: ids}, want: "has the data of cluster c1, but cluster c2, member ID a1, is recorded"},
		{reason: "another member", state: stateExisting, record: identity{0xc1, 0xa2}, data: data{identity: ids}, want: "has the data of member ID a1, but cluster c1, member ID a2, is recorded"},
		{reason: "another member, no cluster to compare with", state: stateNew, record: identity{member: 0xa2}, data: data{identity: ids}, want: "has the data of member ID a1, but member ID a2 is recorded"},

		{reason: "damaged", state: stateExisting, record: ids, data: data{damage: errors.New("torn")}, want: "has damaged data: torn. Starting on it could lose or corrupt data (cluster c1"},
		{reason: "added anew after its data was lost", state: stateExisting, record: ids, joins: true},
		{reason: "added anew, and interrupted at it", state: stateExisting, record: ids, joins: true, data: data{damage: errNoLog}},
		{reason: "added anew, with its old data", state: stateExisting, record: identity{0xc1, 0xa2}, joins: true, data: data{identity: ids}, want: "has the data of member ID a1"},
		{reason: "interrupted while it was made", state: stateNew, data: data{damage: errNoLog}, want: ""},
		{reason: "without a log, but recorded", state: stateExisting, record: ids, data: data{damage: errNoLog}, want: "has damaged data: there are files but no write-ahead log"},
		{reason: "damaged before anything is recorded", state: stateNew, data: data{damage: errors.New("torn")}, want: "its first start was interrupted and nothing is lost: delete this claim"},
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
		_, err := decide(long, "/data/etcd", record{identity: ids, state: stateExisting}, d)
		if err == nil {
			t.Errorf("it starts on %+v", d)
		} else if n := len("error: " + err.Error() + "\n"); n > 2048 {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
