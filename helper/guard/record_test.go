package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadRecord(t *testing.T) {
	for _, test := range []struct {
		reason string
		keys   map[string]string
		record record
		want   string // in the error
	}{
		{reason: "before the first start", keys: map[string]string{"initial-cluster-state": "new"}, record: record{state: stateNew}},
		{reason: "nothing recorded yet", keys: map[string]string{"initial-cluster-state": "new", "cluster-id": "", "member-id.m0": ""}, record: record{state: stateNew}},
		{reason: "recorded", keys: map[string]string{"initial-cluster-state": "existing", "cluster-id": "8e9e05c52164694d", "member-id.m0": "f"}, record: record{identity: identity{0x8e9e05c52164694d, 0xf}, state: stateExisting}},
		{reason: "written with a line end", keys: map[string]string{"initial-cluster-state": "existing\n", "cluster-id": "c1\n"}, record: record{identity: identity{cluster: 0xc1}, state: stateExisting}},
		{reason: "of another member", keys: map[string]string{"initial-cluster-state": "existing", "member-id.m1": "f"}, record: record{state: stateExisting}},

		{reason: "joining", keys: map[string]string{"initial-cluster-state": "existing", "joining": "m0"}, record: record{state: stateExisting, joins: true}},
		{reason: "another one is joining", keys: map[string]string{"initial-cluster-state": "existing", "joining": "m1"}, record: record{state: stateExisting}},
		{reason: "not mounted", want: `there is no initial-cluster-state "new" or "existing"`},
		{reason: "no state", keys: map[string]string{"cluster-id": "c1"}, want: `(found: "")`},
		{reason: "unknown state", keys: map[string]string{"initial-cluster-state": "New"}, want: `(found: "New")`},
		{reason: "a prefix that etcdctl does not print", keys: map[string]string{"initial-cluster-state": "new", "cluster-id": "0xc1"}, want: "no hexadecimal ID"},
		{reason: "too long", keys: map[string]string{"initial-cluster-state": "new", "member-id.m0": "18e9e05c52164694d"}, want: "member-id.m0"},
		{reason: "zero is no ID", keys: map[string]string{"initial-cluster-state": "new", "cluster-id": "0"}, want: "no hexadecimal ID"},
	} {
		dir := filepath.Join(t.TempDir(), "identity")
		for key, value := range test.keys {
			write(t, filepath.Join(dir, key), []byte(value))
		}
		got, err := readRecord(dir, "m0")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got != test.record {
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
		{"an init container, in a new cluster", record{state: stateNew}, Passed{}, true, stateNew},
		{"an init container, of a member that joins", record{state: stateExisting, joins: true}, Passed{}, true, stateExisting},
		{"a new cluster", record{state: stateNew}, Passed{State: stateNew}, true, stateNew},
		{"the cluster has formed, and the volume is late", record{state: stateNew}, Passed{State: stateExisting}, false, stateExisting},
		{"the cluster has formed, and what was passed is late", record{state: stateExisting}, Passed{State: stateNew}, false, stateExisting},
		{"a member that joins", record{state: stateExisting, joins: true}, Passed{State: stateExisting, Joining: "m0"}, true, stateExisting},
		{"it has joined, and the volume is late", record{state: stateExisting, joins: true}, Passed{State: stateExisting}, false, stateExisting},
		{"another one joins by now", record{state: stateExisting, joins: true}, Passed{State: stateExisting, Joining: "m1"}, false, stateExisting},
		{"it joins, and the volume is late", record{state: stateExisting}, Passed{State: stateExisting, Joining: "m0"}, false, stateExisting},
		{"something else was passed", record{state: stateNew}, Passed{State: "New"}, false, stateExisting},
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
	write(t, filepath.Join(dir, "initial-cluster-state"), []byte(stateNew))
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
		if recorded := strings.TrimSpace(cluster + member); r.mayStartEmpty() && strings.TrimSpace(joining) != "m0" && (strings.TrimSpace(state) != stateNew || recorded != "") {
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
