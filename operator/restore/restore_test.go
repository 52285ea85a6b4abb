package restore

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/version"
)

// TestRefuse is about what can't be restored: each sentence says what to do.
func TestRefuse(t *testing.T) {
	release := func(v, etcd string, from ...string) version.Release {
		r := version.Release{Version: v, UpgradesFrom: from, Members: version.Members{Etcd: etcd}}
		r.Host.From, r.Host.To = "1.34", "1.37"
		return r
	}
	releases := []version.Release{release("v0.4.0", "v3.7.3", "v0.3.0"), release("v0.5.0", "v3.7.4", "v0.4.0"), release("v0.6.0", "v3.7.4", "v0.5.0")}
	for _, test := range []struct {
		reason string
		change func(*Target, *contract.BackupReport)
		says   string
	}{
		{"it fits", func(*Target, *contract.BackupReport) {}, ""},
		{"it is of the release before", func(_ *Target, b *contract.BackupReport) { b.Release, b.EtcdVersion = "v0.4.0", "3.7.3" }, ""},
		{"it is of an unknown release", func(_ *Target, b *contract.BackupReport) { b.Release = "v0.9.0" }, "which this operator does not know: install the operator of that release"},
		{"it names no release", func(_ *Target, b *contract.BackupReport) { b.Release = "" }, "which this operator does not know"},
		{"an older release is asked for", func(t *Target, _ *contract.BackupReport) { t.Release = releases[0] }, "set spec.version to v0.5.0 or a later one"},
		{"a release too far away is asked for", func(t *Target, b *contract.BackupReport) {
			t.Release, b.Release, b.EtcdVersion = releases[2], "v0.4.0", "3.7.3"
		}, "set spec.version to v0.4.0, and upgrade the restored registry"},
		{"its release does not know the host", func(t *Target, b *contract.BackupReport) {
			b.Release, b.EtcdVersion, t.Releases[0].Host.To = "v0.4.0", "3.7.3", "1.35"
		}, "which has to come up with it before it is upgraded to v0.5.0"},
		{"it is of a newer etcd", func(_ *Target, b *contract.BackupReport) { b.EtcdVersion = "3.8.0" }, "runs the older etcd v3.7.4"},
		{"it is of an etcd without a version", func(_ *Target, b *contract.BackupReport) { b.EtcdVersion = "new" }, "runs the older etcd v3.7.4"},
		{"it has keys, and the spec has none", func(_ *Target, b *contract.BackupReport) { b.EncryptionKeys = []string{"aescbc/a"} }, "encrypted with aescbc/a, and spec.server.encryption is not set"},
		{"it has another key", func(t *Target, b *contract.BackupReport) {
			t.Keys, b.EncryptionKeys = []string{"aescbc/b"}, []string{"aescbc/a", "aescbc/b"}
		}, "encrypted with aescbc/a, and the Secret of spec.server.encryption has aescbc/b"},
		{"it has that key", func(t *Target, b *contract.BackupReport) {
			t.Keys, b.EncryptionKeys = []string{"aescbc/b", "aescbc/a"}, []string{"aescbc/a"}
		}, ""},
		{"it was not verified, and may have a key", func(t *Target, b *contract.BackupReport) {
			t.Needs, b.EncryptionKeys = []string{"aescbc/a", "aescbc/b"}, []string{"aescbc/b"}
		}, "encrypted with aescbc/b and aescbc/a, and spec.server.encryption is not set"},
		{"it was not verified, and that key is there", func(t *Target, _ *contract.BackupReport) {
			t.Keys, t.Needs = []string{"aescbc/a"}, []string{"aescbc/a"}
		}, ""},
		{"it does not fit the volume", func(_ *Target, b *contract.BackupReport) { b.Bytes = 900 << 20 }, "set that to at least 2057Mi"},
		{"it is another one", func(t *Target, _ *contract.BackupReport) { t.SHA256 = "cd" }, "the store has another backup under that name"},
	} {
		copied := append([]version.Release{}, releases...)
		target := Target{Releases: copied, Release: copied[1], Host: "v1.37.1", Storage: resource.MustParse("1Gi"), SHA256: "ab"}
		report := contract.BackupReport{Backup: contract.Backup{Name: "b", SHA256: "ab", Bytes: 1 << 20, Release: "v0.5.0", EtcdVersion: "3.7.4"}}
		test.change(&target, &report)
		err := target.Refuse(report)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.says)
		}
	}
}

// TestUnverified says of a backup that was never verified what is not known of it.
func TestUnverified(t *testing.T) {
	var b contract.BackupReport
	if err := Unverified(b); err == nil || !strings.Contains(err.Error(), "was never verified") {
		t.Error(err)
	}
	b.VerifiedTime = new(time.Now())
	if err := Unverified(b); err != nil {
		t.Error(err)
	}
}

// TestID tells apart what is asked for.
func TestID(t *testing.T) {
	type asked struct{ Name string }
	first, again := ID(asked{"a"}), ID(asked{"a"})
	if first != again || first == ID(asked{"b"}) || len(first) != 16 {
		t.Error("the IDs do not tell apart what is asked for")
	}
}
