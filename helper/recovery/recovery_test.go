package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/internal/contract"
)

// points are where a recovery may be killed, in this order.
var points = []string{"begun", "copying", "copied", "saved", "restoring", "restored", "moved aside", "swapped"}

// TestKilled kills the container once at each point, and again at each other one: the data of
// before is always there, and in the end the new one is in its place.
func TestKilled(t *testing.T) {
	for _, first := range points {
		for _, second := range points {
			p := newPod(t)
			reason := first + ", " + second
			for _, p.killed = range []string{first, second} {
				if err := p.start(); err != nil && !errors.Is(err, errKilled) {
					t.Fatalf("%s: %v", reason, err)
				}
				if p.database(p.member.DataDir) != "of before" && p.database(p.old()) != "of before" {
					t.Fatalf("%s: the data of before is gone", reason)
				}
			}
			p.killed = ""
			if err := p.start(); err != nil {
				t.Fatalf("%s: %v", reason, err)
			}
			p.recovered(reason)
			if p.taken != 1 {
				t.Errorf("%s: it has started etcd on a copy %d times", reason, p.taken)
			}
		}
	}
}

// TestOnce starts a member that was recovered: it is not recovered again, and the data of
// before goes when no recovery is recorded any more.
func TestOnce(t *testing.T) {
	p := newPod(t)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"copying ", "its data ends at revision 4711", "restoring the snapshot", "recovered; the data of before is in " + p.old()} {
		if strings.Count(p.out.String(), line) != 1 {
			t.Errorf("%q is not said once: %s", line, p.out.String())
		}
	}
	p.recovered("first")
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	p.recovered("again")
	mounted := filepath.Join(p.member.IdentityDir, contract.RecordRecovery)
	passed := p.passed.Recovery
	for reason, late := range map[string]func(){
		"what is mounted is late": func() { p.passed.Recovery = "" },
		"what is passed is late":  func() { p.passed.Recovery = passed; write(t, mounted, "") },
	} {
		p.record()
		late()
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		p.recovered(reason)
	}
	p.passed.Recovery = ""
	write(t, mounted, "")
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(p.member.DataDir), sideName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what it has left takes space: %v", err)
	}
}

// TestAgain recovers a second quorum that was lost, with what the first recovery has left.
func TestAgain(t *testing.T) {
	p := newPod(t)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	p.fill(p.cluster, p.id, "of the first")
	p.recovery = contract.Recovery{Lineage: "second", Member: "m0", ClusterID: p.cluster, MemberID: p.id, Revision: revision}
	p.record()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(filepath.Dir(p.member.DataDir), sideName)
	if p.database(filepath.Join(root, "second", old)) != "of the first" || p.database(p.member.DataDir) != "restored" || p.taken != 2 {
		t.Errorf("it was recovered with other data: %s", p.out.String())
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("what the first one has left takes space: %v, %v", entries, err)
	}
}

// TestOtherApproval is about a recovery that was interrupted, and approved otherwise: what it
// has made is not used, and its data is back first.
func TestOtherApproval(t *testing.T) {
	for _, point := range points[:len(points)-1] {
		p := newPod(t)
		p.killed = point
		if err := p.start(); !errors.Is(err, errKilled) {
			t.Fatalf("%s: %v", point, err)
		}
		p.recovery.Lineage, p.killed, p.taken = "other", "", 0
		p.record()
		if err := p.start(); err != nil {
			t.Fatalf("%s: %v", point, err)
		}
		root := filepath.Join(filepath.Dir(p.member.DataDir), sideName)
		if p.database(filepath.Join(root, "other", old)) != "of before" || p.database(p.member.DataDir) != "restored" || p.taken != 1 {
			t.Errorf("%s: %s", point, p.out.String())
		}
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: left are %v, %v", point, entries, err)
		}
	}
}

// TestContinues is about what a recovery that was refused has made: it is of use when more loss
// is accepted, and of none when less is, or when a person has changed the data.
func TestContinues(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*pod)
		taken  int
	}{
		"nothing was changed":   {func(*pod) {}, 1},
		"more loss is accepted": {func(p *pod) { p.recovery.Revision -= 2 }, 1},
		"less loss is accepted": {func(p *pod) { p.recovery.Revision++ }, 2},
		"the data was changed":  {func(p *pod) { p.fill("c1", "a1", "of a person") }, 2},
	} {
		p := newPod(t)
		p.ends--
		for range 2 {
			if err := p.start(); !errors.As(err, new(*Failure)) || p.taken != 1 {
				t.Fatalf("%s: %d times, %v", reason, p.taken, err)
			}
		}
		test.change(p)
		p.record()
		err := p.start()
		if fails := reason != "more loss is accepted"; (err != nil) != fails || p.taken != test.taken {
			t.Errorf("%s: %d times, %v", reason, p.taken, err)
		}
	}
}

// TestNotRecovered is about members that do not start: their data is as it was, and there is no
// other.
func TestNotRecovered(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*pod)
		says   string
	}{
		"there is no room":                  {func(p *pod) { p.free = 1 << 20 }, "and 1048576 bytes are free. Grow spec.etcd.storage.size where the storage class of claim data-m0 allows that; or recover from a backup"},
		"the disk is full meanwhile":        {func(p *pod) { p.restores = "echo write: no space left on device; exit 1"; p.record() }, "Grow spec.etcd.storage.size"},
		"etcdutl is killed":                 {func(p *pod) { p.restores = "kill -9 $$"; p.record() }, "restore the snapshot: signal: killed"},
		"etcdutl makes other IDs":           {func(p *pod) { p.makes("c9", "a9") }, "has made the data of cluster c9, member ID a9"},
		"it ends too early":                 {func(p *pod) { p.ends = revision - 1 }, "the data of m0 ends at revision 4710, and the recovery was approved for data up to 4711 at least"},
		"there is a link in the data":       {func(p *pod) { link(p, filepath.Join(p.member.DataDir, "member", "link")) }, "link is neither a file nor a directory"},
		"the side directory is a file":      {func(p *pod) { write(p.t, filepath.Join(filepath.Dir(p.member.DataDir), sideName), "") }, "recovery is not a directory"},
		"the side directory is a link":      {func(p *pod) { link(p, filepath.Join(filepath.Dir(p.member.DataDir), sideName)) }, "recovery is not a directory"},
		"the data of before is there twice": {func(p *pod) { write(p.t, filepath.Join(p.old(), "member", "snap", "db"), "twice") }, "move one of the two out of this volume"},
	} {
		p := newPod(t)
		test.change(p)
		for range 2 { // the second time as the first
			err := p.start()
			if !errors.As(err, new(*Failure)) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "claim data-m0") {
				t.Errorf("%s: %v", reason, err)
			}
			if cluster, id, err := guard.Identity(p.member.DataDir); err != nil || cluster != "c1" || id != "a1" || p.database(p.member.DataDir) != "of before" {
				t.Errorf("%s: its data is that of cluster %s, member ID %s: %s, %v", reason, cluster, id, p.database(p.member.DataDir), err)
			}
		}
	}
}

// TestForeign is about what someone else has put into the side directory: it stays, and is not
// used.
func TestForeign(t *testing.T) {
	p := newPod(t)
	root := filepath.Join(filepath.Dir(p.member.DataDir), sideName)
	kept := []string{filepath.Join(root, "file"), filepath.Join(root, "mine", "member", "snap", "db"), filepath.Join(root, "copied", note)}
	for _, path := range kept {
		write(t, path, "mine")
	}
	link(p, filepath.Join(root, "link"))
	target, err := os.Readlink(filepath.Join(root, "link"))
	if err != nil {
		t.Fatal(err)
	}
	// These have names that the recovery uses.
	for _, name := range []string{copied, restored} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, lineage), 0o700), os.Symlink(target, filepath.Join(root, lineage, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	p.recovered("with what is someone else's")
	if removed, err := Clean(p.member.DataDir); err != nil || len(removed) != 1 {
		t.Errorf("removed are %v, %v", removed, err)
	}
	for _, path := range append(kept, filepath.Join(root, "link", "file")) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestLost is about a member without data, or with damaged data: the guard says so as always.
func TestLost(t *testing.T) {
	for reason, change := range map[string]func(*pod){
		"it is empty":   func(p *pod) { _ = os.RemoveAll(p.member.DataDir) },
		"it is damaged": func(p *pod) { write(p.t, filepath.Join(p.member.DataDir, "member", "wal", "1-1.wal"), "x") },
		"it was recovered, and has lost its data since": func(p *pod) {
			if err := p.start(); err != nil {
				p.t.Fatal(err)
			}
			_ = os.RemoveAll(p.member.DataDir)
		},
	} {
		p := newPod(t)
		change(p)
		var refusal *guard.Refusal
		if err := p.start(); !errors.As(err, &refusal) || !refusal.Lost {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestReplay is about an etcd that does not start on the copy, which the next attempt makes
// again.
func TestReplay(t *testing.T) {
	for reason, test := range map[string]struct {
		script, says string
		patience     time.Duration
	}{
		"it ends":       {"echo panic: crc mismatch; exit 2", "etcd does not start on a copy of the data: it has ended (exit status 2): panic: crc mismatch. If the data is damaged, recover from another member or from a backup", time.Minute},
		"it is killed":  {"kill -9 $$", "it has ended (signal: killed)", time.Minute},
		"it never ends": {"echo waiting; exec sleep 3600", "etcd did not answer within 300ms", 300 * time.Millisecond},
		"it is given nothing that is the member's": {`env | grep -q ^ETCD_ && exit 1; case "$*" in *--force-new-cluster*) exit 3;; esac`, "it has ended (exit status 3)", time.Minute},
	} {
		t.Setenv("ETCD_INITIAL_CLUSTER", "m0=https://m0:2380")
		p := newPod(t)
		etcd := p.program("etcd", test.script)
		r := p.run(p.recovery)
		r.take, r.Etcd, r.Patience = nil, etcd, test.patience
		err := r.Run(t.Context())
		if !errors.As(err, new(*Failure)) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(p.old())); err != nil || len(entries) != 1 {
			t.Errorf("%s: left are %v, %v", reason, entries, err)
		}
	}
}

// TestCanceled ends the etcd that it has started.
func TestCanceled(t *testing.T) {
	p := newPod(t)
	etcd := p.program("etcd", "exec sleep 3600")
	ctx, cancel := context.WithCancel(t.Context())
	r := p.run(p.recovery)
	r.take, r.Etcd, r.reached = nil, etcd, func(point string) {
		if point == "started" {
			cancel()
		}
	}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it was canceled: %v", err)
	}
}

// TestPeak is about how many bytes are needed at each point.
func TestPeak(t *testing.T) {
	n := needs{data: 1000 << 20, database: 400 << 20}
	for name, want := range map[string]int64{"": 1000<<20 + 400<<20 + logs, copied: 400<<20 + logs, snapshotName + ".db": 400<<20 + logs, restored: 0} {
		s := side{t.TempDir(), lineage}
		switch {
		case strings.HasSuffix(name, ".db"):
			write(t, s.path(name), "")
		case name != "":
			write(t, filepath.Join(s.path(name), "file"), "")
		}
		if got := n.peak(s); got != want {
			t.Errorf("with %q: %d, want %d", name, got, want)
		}
	}
	// Of a database that is most of the data, there are two at the end.
	if got, want := (needs{data: 400 << 20, database: 390 << 20}).peak(side{t.TempDir(), lineage}), int64(390<<20+390<<20+logs); got < want {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestErrorFits holds the longest error with the longest names to what kubelet keeps of a
// container's output.
func TestErrorFits(t *testing.T) {
	p := newPod(t)
	etcd := p.program("etcd", "for i in 1 2 3 4 5 6 7 8 9 0; do for j in 1 2 3 4 5 6 7 8 9 0; do echo no space left on device; done; done; exit 1")
	p.recovery.Member = strings.Repeat("m", 253)
	r := p.run(p.recovery)
	r.take, r.Etcd = nil, etcd
	if err := r.Run(t.Context()); err == nil || len("error: "+err.Error()+"\n") > 2048 {
		t.Errorf("%d bytes: %v", len(fmt.Sprint(err)), err)
	}
}

// TestFull is about a disk that is full while the data is copied.
func TestFull(t *testing.T) {
	p := newPod(t)
	r := p.run(p.recovery)
	r.take = func(side) (contract.Snapshot, error) {
		return contract.Snapshot{}, &fs.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}
	}
	if err := r.Run(t.Context()); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "Grow spec.etcd.storage.size") {
		t.Error(err)
	}
}
