package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadData(t *testing.T) {
	const first, second = "member/wal/0000000000000000-0000000000000000.wal", "member/wal/0000000000000001-0000000000000a00.wal"
	ids := identity{cluster: 0xc1, member: 0xa1}
	whole := segment(7, ids)
	for _, test := range []struct {
		reason string
		files  map[string][]byte // a folder where nil
		want   identity
		damage string
	}{
		{reason: "the folder is absent"},
		{reason: "folders only", files: map[string][]byte{"member/snap": nil, "member/wal": nil}},
		{reason: "one segment", files: map[string][]byte{first: whole, "member/snap/db": {1}, "member/wal/0.tmp": {0}}, want: ids},
		{reason: "two segments", files: map[string][]byte{first: whole, second: segment(8, ids)}, want: ids},
		{reason: "a repaired segment's copy", files: map[string][]byte{first: whole, second + ".broken": {1}}, want: ids},

		{reason: "the log is gone", files: map[string][]byte{"member/snap/db": {1}}, damage: "no write-ahead log"},
		{reason: "only a spare segment", files: map[string][]byte{"member/wal/0.tmp": whole}, damage: "no write-ahead log"},
		{reason: "the log was never finished", files: map[string][]byte{"member/wal.tmp/0000000000000000-0000000000000000.wal": whole}, damage: "no write-ahead log"},
		{reason: "something else", files: map[string][]byte{"PG_VERSION": {1}}, damage: "no write-ahead log"},
		{reason: "an empty segment", files: map[string][]byte{first: {}}, damage: first},
		{reason: "a damaged segment after a whole one", files: map[string][]byte{first: whole, second: make([]byte, 64)}, damage: second},
		{reason: "two clusters", files: map[string][]byte{first: whole, second: segment(7, identity{0xc2, 0xa1})}, damage: "of two members"},
	} {
		dir := filepath.Join(t.TempDir(), "etcd")
		for path, content := range test.files {
			path = filepath.Join(dir, path)
			if content != nil {
				write(t, path, content)
			} else if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readData(dir)
		if err != nil || got.identity != test.want {
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		}
		if (got.damage == nil) != (test.damage == "") || got.damage != nil && !strings.Contains(got.damage.Error(), test.damage) {
			t.Errorf("%s: damage %v, want %q", test.reason, got.damage, test.damage)
		}
	}
}

func TestReadDataFails(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "member", "wal")
	if err := os.MkdirAll(log, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(log, "0.wal")); err != nil {
		t.Fatal(err)
	}
	if d, err := readData(dir); err == nil {
		t.Errorf("what can't be read counts as %+v", d)
	}
}
