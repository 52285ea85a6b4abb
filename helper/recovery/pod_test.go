package recovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	lineage  = "5d0ff9a6-4ab0-4f4c-8a5e-6f0b0f2f1a77"
	revision = 4711
)

// pod is a member's volume and what its container is told, with scripts in place of etcd's
// programs.
type pod struct {
	t                *testing.T
	member           guard.Member
	passed           guard.Passed
	etcdutl          string
	recovery         contract.Recovery
	cluster, id      string // of the etcd that is to be
	out              bytes.Buffer
	taken            int   // how many snapshots
	ends             int64 // the revision that the data has
	free             int64
	killed, restores string // where it is killed, and what etcdutl does after it has restored
}

// newPod returns one whose data is of cluster c1, member a1.
func newPod(t *testing.T) *pod {
	t.Helper()
	volume := t.TempDir()
	p := &pod{t: t, ends: revision, free: 1 << 40}
	p.member = guard.Member{Name: "m0", DataDir: filepath.Join(volume, "data", "etcd"), IdentityDir: filepath.Join(volume, "identity"), Cluster: guard.Cluster{PeerURL: "https://{member}:2380"}}
	p.recovery = contract.Recovery{Lineage: lineage, Member: "m0", ClusterID: "c1", MemberID: "a1", Revision: revision}
	p.record()
	p.fill("c1", "a1", "of before")
	return p
}

// record has the recovery recorded, in both places.
func (p *pod) record() {
	p.t.Helper()
	p.cluster, p.id = contract.RestoredIdentity(p.recovery.Lineage, "https://m0:2380")
	text, err := json.Marshal(p.recovery)
	if err != nil {
		p.t.Fatal(err)
	}
	for key, value := range map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: p.cluster, contract.RecordMember + "m0": p.id, contract.RecordMembers: "m0", contract.RecordRecovery: string(text)} {
		write(p.t, filepath.Join(p.member.IdentityDir, key), value)
	}
	p.passed = guard.Passed{State: contract.StateExisting, Recovery: string(text)}
	p.makes(p.cluster, p.id)
}

// makes has etcdutl make the data of an identity.
func (p *pod) makes(cluster, member string) {
	p.t.Helper()
	made := filepath.Join(filepath.Dir(p.member.IdentityDir), "made.wal")
	write(p.t, made, segment(p.t, cluster, member))
	p.etcdutl = p.program("etcdutl", "for a; do case $a in --data-dir=*) data=${a#*=};; esac; done\nmkdir -p $data/member/wal $data/member/snap && cp "+made+" $data/member/wal/0-0.wal && echo restored > $data/member/snap/db\n"+p.restores)
}

// fill gives it data.
func (p *pod) fill(cluster, member, database string) {
	p.t.Helper()
	write(p.t, filepath.Join(p.member.DataDir, "member", "wal", "0-0.wal"), segment(p.t, cluster, member))
	write(p.t, filepath.Join(p.member.DataDir, "member", "snap", "db"), database)
}

// errKilled is that of a container that was killed.
var errKilled = errors.New("killed")

// start does what etcd-guard does until it becomes etcd.
func (p *pod) start() (err error) {
	defer func() {
		if found := recover(); found == errKilled { //nolint:errorlint // it is that one
			err = errKilled
		} else if found != nil {
			panic(found)
		}
	}()
	p.out.Reset()
	if _, err := Undo(p.member.DataDir); err != nil {
		return err
	}
	found, err := guard.Recovery(p.member, p.passed)
	if err != nil {
		return err
	}
	if found != nil {
		if err := p.run(*found).Run(p.t.Context()); err != nil {
			return err
		}
	}
	start, err := guard.Check(p.t.Context(), p.member, p.passed)
	if err == nil && start.Settled {
		_, err = Clean(p.member.DataDir)
	}
	return err
}

func (p *pod) run(found contract.Recovery) Recovery {
	return Recovery{Recovery: found, DataDir: p.member.DataDir, PeerURL: p.member.Cluster.PeerURL, Etcd: "/nowhere/etcd", Etcdutl: p.etcdutl, Out: &p.out,
		take: p.take, free: func(string) (int64, error) { return p.free, nil },
		reached: func(point string) {
			if point == p.killed {
				panic(errKilled)
			}
		}}
}

// take writes a snapshot as etcd sends it.
func (p *pod) take(s side) (contract.Snapshot, error) {
	p.taken++
	content := make([]byte, 512)
	sum := sha256.Sum256(content)
	saved := contract.Snapshot{Name: snapshotName, Version: "3.7.3", Revision: p.ends, Bytes: 512 + sha256.Size}
	text, err := json.Marshal(saved)
	if err != nil {
		return contract.Snapshot{}, err
	}
	write(p.t, s.path(snapshotName+".json"), string(text))
	write(p.t, s.path(snapshotName+".db"), string(append(content, sum[:]...)))
	return saved, nil
}

// database returns what a data dir has.
func (p *pod) database(dir string) string {
	content, err := os.ReadFile(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(content))
}

func (p *pod) old() string {
	return filepath.Join(filepath.Dir(p.member.DataDir), sideName, lineage, old)
}

// recovered expects it to have the new data, and that of before beside it alone.
func (p *pod) recovered(reason string) {
	p.t.Helper()
	if cluster, id, err := guard.Identity(p.member.DataDir); err != nil || cluster != p.cluster || id != p.id || p.database(p.member.DataDir) != "restored" {
		p.t.Errorf("%s: it has the data of cluster %s, member ID %s, %q, %v", reason, cluster, id, p.database(p.member.DataDir), err)
	}
	entries, err := os.ReadDir(filepath.Dir(p.old()))
	if err != nil || len(entries) != 2 || p.database(p.old()) != "of before" {
		p.t.Errorf("%s: left are %v, %v, and of the data of before: %s", reason, entries, err, p.database(p.old()))
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// segment is the head of a segment of the write-ahead log.
func segment(t *testing.T, cluster, member string) string {
	t.Helper()
	ids := make([]uint64, 2)
	for i, text := range []string{member, cluster} {
		var err error
		if ids[i], err = strconv.ParseUint(text, 16, 64); err != nil {
			t.Fatal(err)
		}
	}
	number := func(b []byte, field protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
	}
	frame := func(kind uint64, crc uint32, content []byte) []byte {
		message := number(number(nil, 1, kind), 2, uint64(crc))
		message = protowire.AppendBytes(protowire.AppendTag(message, 3, protowire.BytesType), content)
		length, padding := uint64(len(message)), -len(message)&7
		if padding != 0 {
			length |= uint64(0x80|padding) << 56
		}
		return slices.Concat(binary.LittleEndian.AppendUint64(nil, length), message, make([]byte, padding))
	}
	metadata := number(number(nil, 1, ids[0]), 2, ids[1])
	return string(slices.Concat(frame(4, 0, nil), frame(1, crc32.Checksum(metadata, crc32.MakeTable(crc32.Castagnoli)), metadata)))
}

// program writes a script, and returns its path.
func (p *pod) program(name, script string) string {
	p.t.Helper()
	path := filepath.Join(filepath.Dir(p.member.IdentityDir), name)
	write(p.t, path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // it is a program
		p.t.Fatal(err)
	}
	return path
}

// link makes a link to a directory that has something in it.
func link(p *pod, path string) {
	p.t.Helper()
	target := p.t.TempDir()
	write(p.t, filepath.Join(target, "file"), "of someone else")
	if err := os.Symlink(target, path); err != nil {
		p.t.Fatal(err)
	}
}
