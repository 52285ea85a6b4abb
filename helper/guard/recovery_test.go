package guard

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
)

// TestRecovery is about which member's data a lost quorum is recovered with: only that of the
// one that is named, as long as both what is mounted and what was passed say so.
func TestRecovery(t *testing.T) {
	const lineage, peerURL = "5d0ff9a6", "https://m0.etcd:2380"
	cluster, member := contract.RestoredIdentity(lineage, peerURL)
	text := func(member, cluster, id string) string {
		return fmt.Sprintf(`{"lineage":%q,"member":%q,"clusterID":%q,"memberID":%q,"revision":9}`, lineage, member, cluster, id)
	}
	var next identity
	if _, err := fmt.Sscanf(cluster+" "+member, "%x %x", &next.cluster, &next.member); err != nil {
		t.Fatal(err)
	}
	mine, before := text("m0", "c1", "a1"), identity{0xc1, 0xa1}
	recorded := map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: cluster, "member-id.m0": member}
	late := map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: "c1", "member-id.m0": "a1"}
	changed := func(key, value string) map[string]string {
		out := maps.Clone(recorded)
		out[key] = value
		return out
	}
	for _, test := range []struct {
		reason          string
		record          map[string]string
		mounted, passed string
		data            identity
		recovers        bool
		undecided       string // in the error
	}{
		{"none is recorded", late, "", "", before, false, ""},
		{"it is to be recovered", recorded, mine, mine + "\n", before, true, ""},
		{"written in another way", recorded, mine, strings.ReplaceAll(mine, ",", ", "), before, true, ""},
		{"with another field, of a later version", recorded, strings.Replace(mine, "{", `{"x":1,`, 1), mine, before, true, ""},
		{"it was recovered", recorded, mine, mine, next, false, ""},
		{"it was recovered, and what was passed is late", recorded, mine, "", next, false, ""},
		{"it was recovered, and the volume is late", recorded, "", mine, next, false, ""},
		{"it has no data", recorded, mine, mine, identity{}, false, ""},
		{"the volume is late", late, "", mine, before, false, "(recovery is absent, RECORDED_RECOVERY is 5d0ff9a6 with member m0, cluster c1, member ID a1): one of them is late"},
		{"what was passed is late", recorded, mine, "", before, false, "RECORDED_RECOVERY is absent): one of them is late"},
		{"they differ", recorded, mine, text("m1", "c1", "a2"), before, false, "one of them is late"},
		{"they differ in the revision", recorded, mine, strings.Replace(mine, "9}", "8}", 1), before, false, "one of them is late"},

		{"with another member", recorded, text("m1", "c1", "a2"), text("m1", "c1", "a2"), before, false, ""},
		{"with another member, and what was passed is late", recorded, text("m1", "c1", "a2"), "", before, false, ""},
		{"with another member, and the volume is late", late, "", text("m1", "c1", "a2"), before, false, "has the data of cluster c1, whose quorum was lost and is recovered with another member"},
		{"with another member, of another cluster", late, "", text("m1", "c2", "a2"), before, false, ""},
		{"it has the data of another member", recorded, mine, mine, identity{0xc1, 0xa2}, false, ""},
		{"it has the data of another member, and the volume is late", late, "", mine, identity{0xc1, 0xa2}, false, "it is late"},
		{"it has the data of another cluster", recorded, mine, mine, identity{0xc2, 0xa1}, false, ""},

		{"the record has another cluster than there will be", changed(contract.RecordCluster, "c3"), mine, mine, before, false, "is to be recovered as cluster " + cluster + ", member ID " + member},
		{"the record has another member ID than there will be", changed("member-id.m0", "a3"), mine, mine, before, false, "its data is not touched"},
		{"the record has no member ID", changed("member-id.m0", ""), mine, mine, before, false, "its data is not touched"},
		{"the record is damaged", changed(contract.RecordState, ""), mine, mine, before, false, `no initial-cluster-state "new"`},

		{"it is no JSON", recorded, "yes", mine, before, false, "the key recovery of the ConfigMap mounted in"},
		{"what was passed is cut", recorded, mine, mine[:20], before, false, "the environment variable RECORDED_RECOVERY does not describe the recovery of a lost quorum"},
		{"it lacks a lineage", recorded, `{"member":"m0","clusterID":"c1","memberID":"a1"}`, mine, before, false, `lineage ""`},
		{"its lineage is a path", recorded, strings.Replace(mine, lineage, "../etcd", 1), mine, before, false, "'../etcd'"},
		{"it names no member", recorded, text("", "c1", "a1"), mine, before, false, "it names no member"},
		{"it has no cluster", recorded, text("m0", "", "a1"), mine, before, false, `clusterID ""`},
		{"it has member ID 0", recorded, text("m0", "c1", "0"), mine, before, false, `memberID "0"`},
		{"it has a negative revision", recorded, strings.Replace(mine, "9}", "-9}", 1), mine, before, false, "revision -9"},
	} {
		m := Member{Name: "m0", IdentityDir: t.TempDir(), DataDir: filepath.Join(t.TempDir(), "etcd"), Cluster: Cluster{PeerURL: "https://{member}.etcd:2380"}}
		for key, value := range test.record {
			write(t, filepath.Join(m.IdentityDir, key), []byte(value))
		}
		write(t, filepath.Join(m.IdentityDir, contract.RecordRecovery), []byte(test.mounted))
		if test.data != (identity{}) {
			write(t, filepath.Join(m.DataDir, "member/wal/0000000000000000-0000000000000000.wal"), segment(7, test.data))
		}
		got, err := Recovery(m, Passed{State: contract.StateExisting, Recovery: test.passed})
		if (got != nil) != test.recovers {
			t.Errorf("%s: it is recovered: %+v, %v", test.reason, got, err)
		}
		if test.recovers && *got != (contract.Recovery{Lineage: lineage, Member: "m0", ClusterID: "c1", MemberID: "a1", Revision: 9}) {
			t.Errorf("%s: %+v", test.reason, got)
		}
		want := strings.ReplaceAll(test.undecided, "'", `"`)
		if (err != nil) != (want != "") || err != nil && (!errors.As(err, new(*Undecided)) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", test.reason, err, want)
		}
	}
}

// TestSettled is about when what recoveries have left may go.
func TestSettled(t *testing.T) {
	for reason, test := range map[string]struct {
		cluster, member, mounted, passed string
		settled                          bool
	}{
		"no recovery is recorded":      {"c1", "a1", "", "", true},
		"one is recorded":              {"c1", "a1", "{}", "{}", false},
		"what is mounted is late":      {"c1", "a1", "", "{}", false},
		"what was passed is late":      {"c1", "a1", "{}", "", false},
		"its member ID is not known":   {"c1", "", "", "", false},
		"nothing is recorded of it":    {"", "", "", "", false},
		"its cluster is not known yet": {"", "a1", "", "", false},
	} {
		m := Member{Name: "m0", IdentityDir: t.TempDir(), DataDir: t.TempDir()}
		for key, value := range map[string]string{contract.RecordState: contract.StateExisting, contract.RecordCluster: test.cluster, "member-id.m0": test.member, contract.RecordRecovery: test.mounted} {
			write(t, filepath.Join(m.IdentityDir, key), []byte(value))
		}
		write(t, filepath.Join(m.DataDir, "member/wal/0000000000000000-0000000000000000.wal"), segment(7, identity{0xc1, 0xa1}))
		start, err := Check(t.Context(), m, Passed{State: contract.StateExisting, Recovery: test.passed})
		if err != nil || start.Settled != test.settled {
			t.Errorf("%s: %+v, %v", reason, start, err)
		}
	}
}
