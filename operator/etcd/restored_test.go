package etcd

import (
	"maps"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestRestoredRecord reads what was written of an etcd that begins with a backup, while it is
// restored and when it was.
func TestRestoredRecord(t *testing.T) {
	report := contract.BackupReport{Backup: contract.Backup{Name: "b", Release: "v0.4.0", EtcdVersion: "3.7.3", Revision: 42}}
	restored := Restored{From: "f", Backup: "team/b", Store: &operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "bucket"}}, Lineage: "old", Report: report}
	record := RestoredRecord(*NewRecord(3, "ca", Identity{}, false), "fleet-etcd-0", "https://fleet-etcd-0.fleet-etcd.team.svc:2380", "new", restored)
	data := record.Data(nil)
	if data[contract.RecordState] != contract.StateExisting || data["replicas"] != "1" || data[contract.RecordRestore] != "new" || data[contract.RecordLineage] != "new" || data["release"] != "v0.4.0" || data["etcd-version"] != "v3.7.3" ||
		!validID(data[contract.RecordCluster]) || !validID(data[contract.RecordMember+"fleet-etcd-0"]) {
		t.Errorf("recorded is %v", data)
	}
	read, err := ParseRecord(data)
	if err != nil || !read.Restored.Pending() || read.Restored.Store.S3.Bucket != "bucket" || read.Restored.Report.Revision != 42 {
		t.Fatalf("read is %+v, %v", read, err)
	}
	done := *read
	done.Restored = read.Restored.Done(time.Now())
	after := done.Data(read)
	if text, is := after[contract.RecordRestore]; !is || text != "" || strings.Contains(after["restored"], "bucket") {
		t.Errorf("once it was restored, recorded is %v", after)
	}
	if again, err := ParseRecord(after); err != nil || again.Restored.Pending() || again.Restored.From != "f" {
		t.Errorf("read is %+v, %v", again, err)
	}
	other := RestoredRecord(Record{}, "fleet-etcd-0", "https://fleet-etcd-0.fleet-etcd.team.svc:2380", "newer", restored)
	if other.ClusterID == record.ClusterID || other.Members["fleet-etcd-0"] == record.Members["fleet-etcd-0"] {
		t.Error("two restores of a backup are one cluster")
	}
}

// TestDamagedRestore holds what can't be understood of a restore to errors: only what is
// written twice has a volume restored.
func TestDamagedRestore(t *testing.T) {
	record := RestoredRecord(*NewRecord(1, "ca", Identity{}, false), "m0", "https://m0", "new", Restored{From: "f", Store: &operatorv1alpha1.BackupStore{}, Lineage: "old"})
	for reason, test := range map[string]struct {
		change  func(map[string]string)
		pending bool
		says    string
	}{
		"whole":                       {func(map[string]string) {}, true, ""},
		"another ID":                  {func(data map[string]string) { data[contract.RecordRestore] = "other" }, false, "does not fit"},
		"no details":                  {func(data map[string]string) { delete(data, "restored") }, false, "is damaged"},
		"details that are no JSON":    {func(data map[string]string) { data["restored"] = "x" }, false, "is damaged"},
		"details without a store":     {func(data map[string]string) { data["restored"] = `{"lineage":"old"}` }, false, "does not fit"},
		"details of what is complete": {func(data map[string]string) { data["restored"] = `{"completed":"2026-01-01T00:00:00Z","store":{}}` }, false, "does not fit"},
		"a person has ended it":       {func(data map[string]string) { delete(data, contract.RecordRestore) }, false, ""},
		"there was none":              {func(data map[string]string) { delete(data, contract.RecordRestore); delete(data, "restored") }, false, ""},
	} {
		data := maps.Clone(record.Data(nil))
		test.change(data)
		got, err := ParseRecord(data)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
		if err == nil && got.Restored.Pending() != test.pending {
			t.Errorf("%s: %+v", reason, got.Restored)
		}
	}
}
