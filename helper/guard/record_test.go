package guard

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
)

func TestReadRecord(t *testing.T) {
	for _, test := range []struct {
		reason string
		keys   map[string]string
		record record
		want   string // in the error
	}{
		{reason: "before the first start", keys: map[string]string{"initial-cluster-state": "new"}, record: record{state: contract.StateNew}},
		{reason: "nothing recorded yet", keys: map[string]string{"initial-cluster-state": "new", "cluster-id": "", "member-id.m0": ""}, record: record{state: contract.StateNew}},
		{reason: "recorded", keys: map[string]string{"initial-cluster-state": "existing", "cluster-id": "8e9e05c52164694d", "member-id.m0": "f"}, record: record{identity: identity{0x8e9e05c52164694d, 0xf}, state: contract.StateExisting}},
		{reason: "written with a line end", keys: map[string]string{"initial-cluster-state": "existing\n", "cluster-id": "c1\n"}, record: record{identity: identity{cluster: 0xc1}, state: contract.StateExisting}},
		{reason: "of another member", keys: map[string]string{"initial-cluster-state": "existing", "member-id.m1": "f"}, record: record{state: contract.StateExisting}},

		{reason: "joining", keys: map[string]string{"initial-cluster-state": "existing", "joining": "m0"}, record: record{state: contract.StateExisting, joins: true}},
		{reason: "with its members", keys: map[string]string{"initial-cluster-state": "new", "members": "m0,m1\n"}, record: record{state: contract.StateNew, members: []string{"m0", "m1"}}},
		{reason: "another one is joining", keys: map[string]string{"initial-cluster-state": "existing", "joining": "m1"}, record: record{state: contract.StateExisting}},
		{reason: "not mounted", want: `there is no initial-cluster-state "new" or "existing"`},
		{reason: "no state", keys: map[string]string{"cluster-id": "c1"}, want: `(found: "")`},
		{reason: "unknown state", keys: map[string]string{"initial-cluster-state": "New"}, want: `(found: "New")`},
		{reason: "a prefix that etcdctl does not print", keys: map[string]string{"initial-cluster-state": "new", "cluster-id": "0xc1"}, want: "not a hexadecimal ID"},
		{reason: "too long", keys: map[string]string{"initial-cluster-state": "new", "member-id.m0": "18e9e05c52164694d"}, want: "member-id.m0"},
		{reason: "zero is no ID", keys: map[string]string{"initial-cluster-state": "new", "cluster-id": "0"}, want: "not a hexadecimal ID"},
	} {
		dir := filepath.Join(t.TempDir(), "identity")
		for key, value := range test.keys {
			write(t, filepath.Join(dir, key), []byte(value))
		}
		got, err := readRecord(dir, "m0")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || err == nil && !reflect.DeepEqual(got, test.record) {
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		}
	}
}

// TestRestrict is about a record that is late, in the volume or in what kubelet
// passed: only what both allow counts.
func TestRestrict(t *testing.T) {
	for _, test := range []struct {
		reason string
		record record
		passed Passed
		empty  bool
		state  string
	}{
		{"an init container, in a new cluster", record{state: contract.StateNew}, Passed{}, true, contract.StateNew},
		{"an init container, of a member that joins", record{state: contract.StateExisting, joins: true}, Passed{}, true, contract.StateExisting},
		{"a new cluster", record{state: contract.StateNew}, Passed{State: contract.StateNew}, true, contract.StateNew},
		{"the cluster has formed, and the volume is late", record{state: contract.StateNew}, Passed{State: contract.StateExisting}, false, contract.StateExisting},
		{"the cluster has formed, and what was passed is late", record{state: contract.StateExisting}, Passed{State: contract.StateNew}, false, contract.StateExisting},
		{"a member that joins", record{state: contract.StateExisting, joins: true}, Passed{State: contract.StateExisting, Joining: "m0"}, true, contract.StateExisting},
		{"it has joined, and the volume is late", record{state: contract.StateExisting, joins: true}, Passed{State: contract.StateExisting}, false, contract.StateExisting},
		{"another one joins by now", record{state: contract.StateExisting, joins: true}, Passed{State: contract.StateExisting, Joining: "m1"}, false, contract.StateExisting},
		{"it joins, and the volume is late", record{state: contract.StateExisting}, Passed{State: contract.StateExisting, Joining: "m0"}, false, contract.StateExisting},
		{"something else was passed", record{state: contract.StateNew}, Passed{State: "New"}, false, contract.StateExisting},
	} {
		r := test.record
		r.restrict("m0", test.passed)
		if r.mayStartEmpty() != test.empty || r.state != test.state {
			t.Errorf("%s: it may start empty: %v, state %q", test.reason, r.mayStartEmpty(), r.state)
		}
	}
}

func TestReadRecordFails(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "initial-cluster-state"), []byte(contract.StateNew))
	if err := os.Mkdir(filepath.Join(dir, "cluster-id"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r, err := readRecord(dir, "m0"); err == nil {
		t.Errorf("what can't be read counts as absent: %+v", r)
	}
}

// FuzzReadRecord is about what a person may have written into the record: whatever
// it says, a member starts empty only where nothing was recorded or it joins.
func FuzzReadRecord(f *testing.F) {
	f.Add("new", "", "", "")
	f.Add("existing", "8e9e05c52164694d", "f", "m0")
	f.Add("existing\n", "c1\n", " f", "m0\n")
	f.Add("New", "0xc1", "-1", "m1")
	f.Add("new", "0", "18e9e05c52164694d", "m0 m1")
	f.Fuzz(func(t *testing.T, state, cluster, member, joining string) {
		dir := t.TempDir()
		for key, value := range map[string]string{"initial-cluster-state": state, "cluster-id": cluster, "member-id.m0": member, "joining": joining} {
			write(t, filepath.Join(dir, key), []byte(value))
		}
		r, err := readRecord(dir, "m0")
		if err != nil {
			return
		}
		if recorded := strings.TrimSpace(cluster + member); r.mayStartEmpty() && strings.TrimSpace(joining) != "m0" && (strings.TrimSpace(state) != contract.StateNew || recorded != "") {
			t.Errorf("state %q, cluster %q, member %q, joining %q: it may start empty: %+v", state, cluster, member, joining, r)
		}
		if r.String() == "" || r.role() == "" {
			t.Errorf("%+v has no words", r)
		}
	})
}

// write writes a file and the folders that it is in.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
