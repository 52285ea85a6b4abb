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
