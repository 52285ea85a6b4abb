// Package restore decides whether a registry can begin with a backup. It reads and writes
// nothing: what is known of the backup, and of what it would be restored into, is given.
package restore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/version"
)

// ID identifies what is asked for, a value that has a form in JSON: two that ask for the
// same have the same.
func ID(asked any) string {
	content, err := json.Marshal(asked)
	if err != nil { // no type in it can cause that
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Target is what a backup would be restored into.
type Target struct {
	// Releases are all, and Release is the one that the registry asks for. Host is the
	// version of the host cluster.
	Releases []version.Release
	Release  version.Release
	Host     string
	// Keys are the names of the keys that the spec has servers decrypt with.
	Keys []string
	// Needs are the names of the keys that the ClusterRegistryBackup says it may need: one
	// that was never verified does not say so itself.
	Needs []string
	// Storage is the size of each member's volume.
	Storage resource.Quantity
	// Again begins the sentence that says how another backup is tried; empty for a new registry.
	Again string
	// SHA256 is the checksum that the ClusterRegistryBackup has; empty where none was named.
	SHA256 string
}

// Refuse returns why a backup can't be restored into a target and what to do, nil when it can.
func (t Target) Refuse(b contract.BackupReport) error {
	for _, check := range []func(contract.BackupReport) error{t.identity, t.release, t.etcd, t.keys, t.storage} {
		if err := check(b); err != nil {
			return fmt.Errorf("backup %s can't be restored here: %w", b.Name, err)
		}
	}
	return nil
}

// again is how a refused registry is tried again: restoreFrom can't be changed.
const again = "delete this ClusterRegistry, of which nothing was made, and create it again with "

func (t Target) identity(b contract.BackupReport) error {
	if t.SHA256 != "" && t.SHA256 != b.SHA256 {
		return fmt.Errorf("%s has the SHA-256 %s, and the ClusterRegistryBackup has %s: the store has another backup under that name; %s", b.Location, b.SHA256, t.SHA256, cmp.Or(t.Again, again+"the store, lineage and name of the one that is meant"))
	}
	return nil
}

func (t Target) release(b contract.BackupReport) error {
	taken, err := version.Find(t.Releases, b.Release)
	wanted := t.Release.Version
	switch {
	case err != nil:
		return fmt.Errorf("it was taken from release %q, which this operator does not know: install the operator of that release, or a newer one", b.Release)
	case semver.Compare(b.Release, wanted) > 0:
		return fmt.Errorf("it was taken from release %s, and spec.version is %s, which may not read what a newer release has stored: set spec.version to %s or a later one", b.Release, wanted, b.Release)
	case b.Release == wanted:
		return nil
	}
	// The release that wrote the data comes up with it, and is upgraded then.
	if err := version.CheckUpgrade(t.Releases, b.Release, wanted); err != nil {
		return fmt.Errorf("it was taken from release %s, from which %s can't be reached in one step: set spec.version to %s, and upgrade the restored registry (%w)", b.Release, wanted, b.Release, err)
	}
	if err := taken.CheckHost(t.Host); err != nil {
		return fmt.Errorf("it was taken from release %s, which has to come up with it before it is upgraded to %s: %w", b.Release, wanted, err)
	}
	return nil
}

func (t Target) etcd(b contract.BackupReport) error {
	runs := t.Release.Members.Etcd
	if semver.Compare("v"+b.EtcdVersion, runs) > 0 || !semver.IsValid("v"+b.EtcdVersion) {
		return fmt.Errorf("it was taken from etcd %s, and release %s runs the older etcd %s, which may not read it: set spec.version to a release with that etcd or a newer one, after installing the operator that has it", b.EtcdVersion, t.Release.Version, runs)
	}
	return nil
}

func (t Target) keys(b contract.BackupReport) error {
	var missing []string
	for _, key := range slices.Concat(b.EncryptionKeys, t.Needs) {
		if !slices.Contains(t.Keys, key) && !slices.Contains(missing, key) {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	has := "spec.server.encryption is not set"
	if len(t.Keys) > 0 {
		has = "the Secret of spec.server.encryption has " + strings.Join(t.Keys, ", ")
	}
	return fmt.Errorf("clusters in it are encrypted with %s, and %s: without that key no server can read them; put it into the Secret that spec.server.encryption.secretRef names", strings.Join(missing, " and "), has)
}

func (t Target) storage(b contract.BackupReport) error {
	needs := needs(b.Bytes)
	if t.Storage.Value() >= needs {
		return nil
	}
	return fmt.Errorf("it has %d MiB, and spec.etcd.storage.size is %s: set that to at least %dMi, since etcd may fill half of a volume, which has two copies while it is restored", b.Bytes>>20, t.Storage.String(), needs>>20+1)
}

// needs returns how large a volume has to be for a backup of a size, in bytes: it has the
// copy that is fetched and the one that is restored, and etcd's log; and the quota is half of
// it, of which a tenth is to be left.
func needs(size int64) int64 { return max(2*size+256<<20, 2*size+size/5) }

// Unverified is what is said of a backup that was never verified: it is restored, since it
// may be the only one that is left.
func Unverified(b contract.BackupReport) error {
	if b.VerifiedTime != nil {
		return nil
	}
	return errors.New("backup " + b.Name + " was never verified: that it is whole, and which encryption keys it needs, shows when it is restored")
}

// PassedOver is what is said of a backup that was chosen as the newest although there are newer
// ones, which can't be used; empty when there are none.
func PassedOver(report contract.BackupReport) string {
	if len(report.PassedOver) == 0 {
		return ""
	}
	return fmt.Sprintf("the restored backup %s, taken at %s, is not the newest: what was written since is in others that can't be used: %s", report.Name, report.Time.UTC().Format(time.RFC3339), strings.Join(report.PassedOver, "; "))
}
