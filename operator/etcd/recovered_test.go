package etcd

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// recordOf returns the record of an etcd with three members, whose data has the lineage "old".
func recordOf() Record {
	r := NewRecord(3, "ca", Identity{ClusterID: "c1", Members: map[string]string{"m0": "a0", "m1": "a1", "m2": "a2"}}, true)
	r.Lineage, r.Joining = "old", "m1"
	r.Recovered = &Recovered{ID: "c1-1", From: operatorv1alpha1.RecoverFromMember, Name: "m2", Member: "m2", Cluster: "c1", Members: r.Members, Revision: 42, Lineage: "new", Before: "old",
		Phase: operatorv1alpha1.RecoveryStopping, Abandoned: map[string]Claim{"m0": {UID: "u0", Cluster: "c1"}, "m1": {UID: "u1", Cluster: "c1"}}}
	return *r
}

// TestRecoveryRecord has the record say who the recovered etcd is before it is: the guard is told
// to recover the one member, and no other one may start with data, or without.
func TestRecoveryRecord(t *testing.T) {
	before := recordOf()
	if data := before.Data(nil); data[contract.RecordRecovery] != "" || data[contract.RecordCluster] != "c1" {
		t.Errorf("before all is stopped, recorded is %v", data)
	}
	record := RecoveryRecord(before, 2, "https://m2")
	data := record.Data(&before)
	var told contract.Recovery
	if err := json.Unmarshal([]byte(data[contract.RecordRecovery]), &told); err != nil || told != (contract.Recovery{Lineage: "new", Member: "m2", ClusterID: "c1", MemberID: "a2", Revision: 42}) {
		t.Errorf("the guard is told %+v, %v", told, err)
	}
	if data[contract.RecordState] != contract.StateExisting || data[contract.RecordCluster] == "c1" || !validID(data[contract.RecordCluster]) || data[contract.RecordMember+"m2"] == "a2" ||
		data[contract.RecordMember+"m0"] != "" || data[contract.RecordJoining] != "" || data[contract.RecordLineage] != "new" || data["replicas"] != "3" {
		t.Errorf("recorded is %v", data)
	}
	if identity := restoredIdentity("new", "m2", "https://m2"); record.ClusterID != identity.ClusterID || record.Members["m2"] != identity.Members["m2"] {
		t.Errorf("it is %+v, want %+v", record.Identity, identity)
	}
	data[contract.RecordMembers] = "m0,m1,m2" // which the store adds
	read, err := ParseRecord(data)
	if err != nil || !read.Recovered.Pending() || read.Abandons("m1") != (Claim{"u1", "c1"}) || read.Abandons("m2") != (Claim{}) {
		t.Fatalf("read is %+v, %v", read, err)
	}
	done := *read
	done.Recovered = read.Recovered.Done(42, time.Now())
	after := done.Data(read)
	if text, is := after[contract.RecordRecovery]; !is || text != "" {
		t.Errorf("once it was recovered, recorded is %v", after)
	}
	after[contract.RecordMembers] = "m0,m1,m2"
	again, err := ParseRecord(after)
	if err != nil || again.Recovered.Pending() || again.Recovered.Ended != 42 || again.Abandons("m0").UID != "u0" {
		t.Errorf("read is %+v, %v", again, err)
	}
	if left := again.Vacated("m0"); left.Abandons("m0").UID != "" || left.Abandons("m1").UID != "u1" || again.Abandons("m0").UID != "u0" {
		t.Errorf("one claim is gone: %+v, of %+v", left.Recovered, again.Recovered)
	}
}

// TestRecoveryRecordOfBackup has a backup be restored in the first member, as for a new registry.
func TestRecoveryRecordOfBackup(t *testing.T) {
	before := recordOf()
	before.StoredUnder = "aescbc/a"
	before.Recovered.From, before.Recovered.Member, before.Recovered.Backup = operatorv1alpha1.RecoverFromBackup, "m0", &Restored{From: "f", Store: &operatorv1alpha1.BackupStore{}, Lineage: "old"}
	record := RecoveryRecord(before, 0, "https://m0")
	data := record.Data(&before)
	if data[contract.RecordRestore] != "new" || data[contract.RecordRecovery] != "" || data["replicas"] != "1" || data["claimed"] != "3" || data["encryption-stored"] != "" {
		t.Errorf("recorded is %v", data)
	}
	data[contract.RecordMembers] = "m0"
	if read, err := ParseRecord(data); err != nil || !read.Restored.Pending() || !read.Recovered.Pending() || read.Claimed != 3 {
		t.Errorf("read is %+v, %v", read, err)
	}
}

// TestDamagedRecovery holds what can't be understood of a recovery to errors.
func TestDamagedRecovery(t *testing.T) {
	for reason, text := range map[string]string{
		"no JSON":                    "x",
		"no phase":                   `{"id":"c1-1","from":"Member","member":"m2","lineage":"new"}`,
		"an unknown phase":           `{"id":"c1-1","from":"Member","member":"m2","lineage":"new","phase":"Later"}`,
		"no member":                  `{"id":"c1-1","from":"Member","lineage":"new","phase":"Stopping"}`,
		"no lineage":                 `{"id":"c1-1","from":"Member","member":"m2","phase":"Stopping"}`,
		"a backup that is not there": `{"id":"c1-1","from":"Backup","member":"m0","lineage":"new","phase":"Stopping"}`,
	} {
		record := recordOf()
		data := record.Data(nil)
		data["recovered"], data[contract.RecordMembers] = text, "m0,m1,m2"
		if _, err := ParseRecord(data); err == nil || !strings.Contains(err.Error(), "recovered is damaged") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
