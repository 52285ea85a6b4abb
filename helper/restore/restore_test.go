package restore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// member returns a restore into an empty directory, of a snapshot that is there, by a program
// in place of etcdutl.
func member(t *testing.T, program string) Restore {
	t.Helper()
	dir, content := t.TempDir(), "snapshot"
	r := Restore{ID: "id", Member: "m0", PeerURL: "https://{member}:2380", DataDir: filepath.Join(dir, "etcd"), SideDir: filepath.Join(dir, "restore"),
		IdentityDir: filepath.Join(dir, "identity"), Etcdutl: filepath.Join(dir, "etcdutl"), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))}
	write(t, filepath.Join(r.SideDir, SnapshotFile), content)
	write(t, filepath.Join(r.IdentityDir, "restore"), "id\n")
	write(t, r.Etcdutl, "#!/bin/sh\nfor a; do case $a in --data-dir=*) data=${a#*=};; esac; done\n"+program)
	if err := os.Chmod(r.Etcdutl, 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// restores is a program that restores.
const restores = `mkdir -p $data/member/snap && echo "$@" > $data/member/snap/db`

// TestRun restores, once: what a member has is never touched again.
func TestRun(t *testing.T) {
	r := member(t, restores)
	if said, err := r.Run(t.Context(), "id"); err != nil || !strings.Contains(said, "was restored") {
		t.Fatal(said, err)
	}
	db := filepath.Join(r.DataDir, "member", "snap", "db")
	content, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"snapshot restore", "--name=m0", "--initial-cluster=m0=https://m0:2380", "--initial-cluster-token=id", "--bump-revision=1000000000", "--mark-compacted"} {
		if !strings.Contains(string(content), want) {
			t.Errorf("restored is by %s, and not with %s", content, want)
		}
	}
	if _, err := os.Stat(r.SideDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the snapshot takes room: %v", err)
	}
	write(t, db, "written since")
	write(t, filepath.Join(r.SideDir, SnapshotFile), "snapshot")
	if said, err := r.Run(t.Context(), "id"); err != nil || !strings.Contains(said, "has data") {
		t.Error(said, err)
	}
	if content, err := os.ReadFile(db); err != nil || string(content) != "written since" {
		t.Errorf("live data is %q now, %v", content, err)
	}
}

// TestInterrupted is about what a restore that was killed has left, at each point.
func TestInterrupted(t *testing.T) {
	for reason, left := range map[string]func(Restore) string{
		"half of it":                      func(r Restore) string { return filepath.Join(r.SideDir, "etcd", "member", "snap", "old") },
		"another file in the side folder": func(r Restore) string { return filepath.Join(r.SideDir, "other") },
	} {
		r := member(t, restores)
		write(t, left(r), "left")
		if err := os.MkdirAll(filepath.Join(r.DataDir, "member", "wal"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(t.Context(), "id"); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if _, err := os.Stat(filepath.Join(r.DataDir, "member", "snap", "old")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: what was left is a part of the data: %v", reason, err)
		}
		if _, err := os.Stat(filepath.Join(r.DataDir, "member", "snap", "db")); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestNotRestored is about members that stay without data.
func TestNotRestored(t *testing.T) {
	for reason, test := range map[string]struct {
		program string
		change  func(*Restore)
		passed  string
		fails   string
	}{
		"what is mounted is late":     {restores, func(r *Restore) { write(t, filepath.Join(r.IdentityDir, "restore"), "") }, "id", "the record is late"},
		"nothing is mounted":          {restores, func(r *Restore) { r.IdentityDir = t.TempDir() }, "id", "the record is late"},
		"what was passed is late":     {restores, func(*Restore) {}, "", "the record is late"},
		"both say no":                 {restores, func(r *Restore) { r.IdentityDir = t.TempDir() }, "", ""},
		"another restore is recorded": {restores, func(r *Restore) { r.ID = "other" }, "id", ""},
		"etcdutl fails":               {"echo expected sha256; exit 1", func(*Restore) {}, "id", "expected sha256"},
		"etcdutl is killed":           {"mkdir -p $data/member && touch $data/member/x && kill -9 $$", func(*Restore) {}, "id", "killed"},
		"the snapshot was damaged":    {restores, func(r *Restore) { r.SHA256 = "ab" }, "id", "was saved with ab"},
		"there is no snapshot":        {restores, func(r *Restore) { r.SideDir = t.TempDir() }, "id", "no such file"},
	} {
		r := member(t, test.program)
		test.change(&r)
		_, err := r.Run(t.Context(), test.passed)
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v", reason, err)
		}
		if _, err := os.Stat(r.DataDir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is data: %v", reason, err)
		}
	}
}
