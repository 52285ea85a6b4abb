package etcd

import (
	"encoding/json"
	"fmt"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Restored says from which backup an etcd began. It is recorded before anything is restored,
// with all that this needs: what it was found from may be gone when it is done again.
type Restored struct {
	// From identifies what was asked for: the same again is no other restore.
	From string `json:"from"`
	// Backup is the ClusterRegistryBackup that was named, as namespace/name; empty for none.
	Backup string `json:"backup,omitempty"`
	// Store is where the backup is, nil once it is restored, and Lineage and Name are those
	// of the backup there.
	Store   *operatorv1alpha1.BackupStore `json:"store,omitempty"`
	Lineage string                        `json:"lineage"`
	// Report is what is known of the backup.
	Report contract.BackupReport `json:"report"`
	// Completed is when etcd served what was restored, nil as long as it has not.
	Completed *time.Time `json:"completed,omitempty"`
}

// Pending reports whether etcd has not served yet what is to be restored.
func (r *Restored) Pending() bool { return r != nil && r.Completed == nil }

// Done returns what is recorded once etcd has served it.
func (r Restored) Done(now time.Time) *Restored {
	now = now.UTC().Truncate(time.Second)
	r.Completed, r.Store = &now, nil
	return &r
}

// parseRestored reads what is recorded of a restore. A restore that is under way is recorded
// twice: what can't be understood must not have a volume restored again.
func parseRestored(text, pending, lineage string) (*Restored, error) {
	if text == "" && pending == "" {
		return nil, nil
	}
	r := &Restored{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): remove the keys %s and %s if etcd has the restored data; else delete this ConfigMap and etcd's claims, and the restore begins again", keyRestored, err, keyRestored, contract.RecordRestore)
	}
	if r.Pending() && pending == "" {
		now := time.Time{}
		r.Completed = &now // a person has ended it
	}
	if pending != "" && (pending != lineage || !r.Pending() || r.Store == nil) {
		return nil, fmt.Errorf("%s is %q, which does not fit what %s and %s say: remove the key %s if etcd has the restored data; else delete this ConfigMap and etcd's claims, and the restore begins again", contract.RecordRestore, pending, keyRestored, contract.RecordLineage, contract.RecordRestore)
	}
	return r, nil
}

// RestoredRecord returns the record of an etcd that begins with a backup, in one member: who
// it will be is known before it is, since etcd makes its IDs of the token, which is the
// lineage, and of the URL at which the member serves others. So there is no time at which it
// could begin empty, or with other data.
func RestoredRecord(first Record, member, peerURL, lineage string, restored Restored) *Record {
	first.InitialClusterState, first.Identity = contract.StateExisting, restoredIdentity(lineage, member, peerURL)
	first.Replicas, first.Target, first.Claimed, first.Endpoints = 1, 1, 1, 1
	first.Lineage, first.Restored = lineage, &restored
	first.Release, first.EtcdVersion = restored.Report.Release, "v"+restored.Report.EtcdVersion
	return &first
}

// restoredIdentity returns who an etcd of one member is that etcdutl restores.
func restoredIdentity(token, member, peerURL string) Identity {
	cluster, id := contract.RestoredIdentity(token, peerURL)
	return Identity{ClusterID: cluster, Members: map[string]string{member: id}}
}
