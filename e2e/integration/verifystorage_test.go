package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// readStored runs "verify-storage" on an etcd, which has to be as it was after that, and
// returns its report. Where an error is wanted, it is a part of the text.
func readStored(t *testing.T, etcd *framework.Etcd, wantErr string, flags ...string) contract.Stored {
	t.Helper()
	before, leases := stateOf(t, etcd)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(framework.Root(t), "bin", "clusterregistry-apiserver"), slices.Concat([]string{"verify-storage"}, etcd.Flags(), flags)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if (err == nil) != (wantErr == "") || !strings.Contains(stderr.String(), wantErr) {
		t.Fatalf("%v, stderr %q; want %q", err, stderr.String(), wantErr)
	}
	if said := stdout.String() + stderr.String(); strings.Contains(said, ".example") || strings.Contains(said, "hunter2") || len(said) > 8192 {
		t.Errorf("it prints what is stored, or too much: %s", said)
	}
	if after, now := stateOf(t, etcd); after != before || now != leases {
		t.Errorf("etcd had revision %d and %d leases, and has %d and %d: it was written to", before, leases, after, now)
	}
	var found contract.Stored
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		t.Fatalf("it prints %q: %v (%s)", stdout.String(), err, stderr.String())
	}
	return found
}

// stateOf returns what any write to an etcd changes. A compaction would make the first
// revision unreadable.
func stateOf(t *testing.T, etcd *framework.Etcd) (revision int64, leases int) {
	t.Helper()
	now, err := etcd.Client.Get(t.Context(), "compact_rev_key")
	if err != nil {
		t.Fatal(err)
	}
	list, err := etcd.Client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now.Header.Revision, len(list.Leases)
}

// TestVerifyStorage has a server read an etcd in which another one has written with
// encryption and without, and in which someone has left what no server can read. Then it
// reads backups of that etcd.
func TestVerifyStorage(t *testing.T) {
	t.Parallel()
	const version, encryptedClusters = "v3.7.3", 3
	etcd := framework.StartEtcdVersion(t, version, 1)
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	with := "--encryption-provider-config=" + path

	t.Log("written without encryption, in more pages than one")
	writeClusters(t, etcd, "plain", 501)
	found := readStored(t, etcd, "")
	roles := maps.Clone(found.Objects)
	if found.Objects["clusters"] != 501 || found.Objects["clusterroles"] == 0 || found.Objects["clusterrolebindings"] == 0 || len(found.EncryptionKeys)+len(found.MissingKeys)+len(found.Unserved) > 0 || found.Unreadable != 0 {
		t.Errorf("found is %+v", found)
	}

	t.Log("written with encryption")
	encryptionConfig(t, path, provider("aescbc", "first"), "identity: {}")
	writeClusters(t, etcd, "encrypted", encryptedClusters, with)
	roles["clusters"] += encryptedClusters
	if found := readStored(t, etcd, "", with); !maps.Equal(found.Objects, roles) || !slices.Equal(found.EncryptionKeys, []string{"aescbc/first"}) {
		t.Errorf("with the key, found is %+v", found)
	}
	encryptionConfig(t, path, provider("aescbc", "first"))
	if found := readStored(t, etcd, "501 values can't be read, such as that of "+registryPrefix+"clusters/plain-0 (NotDecrypted)", with); found.Unreadable != 501 || len(found.Examples) != 10 || len(found.MissingKeys) != 0 {
		t.Errorf("without identity, found is %+v", found)
	}
	if found := readStored(t, etcd, "", with, "--read-unencrypted"); !maps.Equal(found.Objects, roles) || found.Unreadable != 0 {
		t.Errorf("without identity, and what is in clear is read, too, found is %+v", found)
	}
	for reason, flags := range map[string][]string{"no configuration": nil, "another key of that name": {with}} {
		encryptionConfig(t, path, strings.Replace(provider("aescbc", "second"), "name: second", "name: first", 1), "identity: {}")
		found := readStored(t, etcd, "has no key that decrypts those which are encrypted with aescbc/first", flags...)
		if found.Unreadable != encryptedClusters || found.Objects["clusters"] != 501 || !slices.Equal(found.MissingKeys, []string{"aescbc/first"}) ||
			found.Examples[0] != (contract.Unreadable{Key: registryPrefix + "clusters/encrypted-0", Reason: contract.NotDecrypted, EncryptionKey: "aescbc/first"}) {
			t.Errorf("%s: found is %+v", reason, found)
		}
	}

	t.Log("in a backup")
	s3 := framework.StartS3(t)
	a := archive{t, etcd, version, s3.Flags(), "0b9c4b52"}
	a.save("good", "uid-1")
	server := "--server=" + filepath.Join(framework.Root(t), "bin", "clusterregistry-apiserver")
	a.run(nil, 1, "backup good is not verified: a server can't read it", "verify", append(a.verifyFlags("good"), server)...)
	a.run(nil, 1, "encrypted with aescbc/first", "verify", append(a.verifyFlags("good"), server, with)...)
	encryptionConfig(t, path, provider("secretbox", "second"), provider("aescbc", "first"))
	var verified contract.BackupReport
	a.run(&verified, 0, "", "verify", append(a.verifyFlags("good"), server, with)...)
	if verified.VerifiedTime == nil || !slices.Equal(verified.EncryptionKeys, []string{"aescbc/first"}) {
		t.Errorf("verified is %+v", verified)
	}

	t.Log("what no server can read")
	encryptionConfig(t, path, provider("secretbox", "second"), provider("aescbc", "first"), "identity: {}")
	put(t, etcd, registryPrefix+"clusters/broken", "hunter2")
	put(t, etcd, registryPrefix+"futures/later", "hunter2")
	found = readStored(t, etcd, "1 values can't be read, such as that of "+registryPrefix+"clusters/broken (NotDecoded)", with)
	if found.Unserved["futures"] != 1 || found.Objects["clusters"] != roles["clusters"] {
		t.Errorf("found is %+v", found)
	}
	a.save("bad", "uid-2")
	a.run(nil, 1, "backup bad is not verified: a server can't read it", "verify", append(a.verifyFlags("bad"), server, with)...)
}

// writeClusters writes clusters through a server that has ended when it returns.
func writeClusters(t *testing.T, etcd *framework.Etcd, name string, count int, flags ...string) {
	t.Helper()
	registry, _, config := independentOn(t, etcd, flags...)
	clusters := clustersOf(t, config)
	for i := range count {
		if _, err := clusters.Create(t.Context(), cluster(fmt.Sprintf("%s-%d", name, i), nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	registry.Signal(t, syscall.SIGKILL)
	registry.WaitRefused(t)
}
