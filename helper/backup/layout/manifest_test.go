package layout

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/internal/contract"
)

var start = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

// backup returns a backup as it is taken.
func backup(name string, revision int64, at time.Time) contract.Backup {
	return contract.Backup{
		Name: name, ID: "uid-" + name, Time: at, Revision: revision, Bytes: 20512, SHA256: sum, EtcdVersion: "3.7.3", Release: "v0.4.0",
		Content: contract.Content{Keys: map[string]int64{"clusters": 2}, HighestModRevision: revision}, Hash: contract.KeysHash{Hash: 7, CompactRevision: 1, Members: 3},
	}
}

func TestManifest(t *testing.T) {
	l := lineage(t, "prod", "one")
	want := NewManifest(l, backup("a", 9, start))
	content, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeManifest(l, "a", content)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for reason, test := range map[string]struct {
		change func(m map[string]any)
		says   string // accepted when empty
	}{
		"as it is":                    {func(map[string]any) {}, ""},
		"a field that came later":     {func(m map[string]any) { m["new"] = "x" }, ""},
		"a later format":              {func(m map[string]any) { m["format"] = 2 }, "use a newer release"},
		"no format":                   {func(m map[string]any) { delete(m, "format") }, "format 0"},
		"another lineage":             {func(m map[string]any) { m["lineage"] = "two" }, `it is of lineage "two", not "one"`},
		"another backup":              {func(m map[string]any) { m["name"] = "b" }, `it is of backup "b", not "a"`},
		"no ID":                       {func(m map[string]any) { delete(m, "id") }, "it has no id"},
		"no time":                     {func(m map[string]any) { delete(m, "time") }, "it has no time"},
		"no revision":                 {func(m map[string]any) { delete(m, "revision") }, "its revision is 0"},
		"a negative revision":         {func(m map[string]any) { m["revision"] = -1 }, "its revision is -1"},
		"a checksum that is a path":   {func(m map[string]any) { m["sha256"] = "../../two/x" }, "is not a valid SHA-256"},
		"a checksum in upper case":    {func(m map[string]any) { m["sha256"] = strings.ToUpper(sum) }, "is not a valid SHA-256"},
		"no size":                     {func(m map[string]any) { delete(m, "bytes") }, "0 bytes"},
		"no version":                  {func(m map[string]any) { delete(m, "etcdVersion") }, "no version of etcd"},
		"a change after the snapshot": {func(m map[string]any) { m["highestModRevision"] = 10 }, "its newest change is of revision 10"},
		"fewer keys than none":        {func(m map[string]any) { m["keys"] = map[string]any{"clusters": -1} }, "-1 keys of clusters"},
		"a text for a number":         {func(m map[string]any) { m["revision"] = "9" }, "not a valid manifest"},
	} {
		changed := map[string]any{}
		if err := json.Unmarshal(content, &changed); err != nil {
			t.Fatal(err)
		}
		test.change(changed)
		damaged, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(l, "a", damaged); (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", reason, err, test.says)
		}
	}
	if _, err := (Manifest{Lineage: "one"}).Encode(); err == nil {
		t.Error("an empty manifest can be stored")
	}
	want.Release = strings.Repeat("x", MaxBytes)
	if _, err := want.Encode(); err == nil || !strings.Contains(err.Error(), "more than the 65536 that are read") {
		t.Errorf("one that is too large to be read: %v", err)
	}
}

func TestVerification(t *testing.T) {
	m := NewManifest(lineage(t, "", "one"), backup("a", 9, start))
	other := strings.Repeat("1b", 32)
	for reason, test := range map[string]struct {
		stored            string
		verified, damaged bool
	}{
		"verified":                      {`{"sha256":"` + sum + `","time":"2026-03-01T04:00:00Z","etcdVersion":"3.7.3"}`, true, false},
		"damaged":                       {`{"sha256":"` + sum + `","time":"2026-03-01T04:00:00Z","damage":"x"}`, false, true},
		"of another snapshot":           {`{"sha256":"` + other + `","time":"2026-03-01T04:00:00Z"}`, false, false},
		"damage of another snapshot":    {`{"sha256":"` + other + `","time":"2026-03-01T04:00:00Z","damage":"x"}`, false, false},
		"without a time":                {`{"sha256":"` + sum + `"}`, false, false},
		"nothing":                       {``, false, false},
		"cut":                           {`{"sha256":"` + sum + `","ti`, false, false},
		"something else that is no map": {`[]`, false, false},
	} {
		b := Backup{Manifest: m, Verification: DecodeVerification(m, []byte(test.stored))}
		if b.Verified() != test.verified || b.Damaged() != test.damaged {
			t.Errorf("%s: verified %v, damaged %v", reason, b.Verified(), b.Damaged())
		}
	}
	v := Verification{SHA256: sum, Time: start, EtcdVersion: "3.7.3", EncryptionKeys: []string{"aescbc/one"}, Damage: "x"}
	content, err := v.Encode()
	if got := DecodeVerification(m, content); err != nil || got == nil || !reflect.DeepEqual(*got, v) {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzDecode reads what others may have stored in the place of a manifest: it is never
// accepted for another backup, and never leads out of the backup's directory.
func FuzzDecode(f *testing.F) {
	l, err := NewLineage("prod", "one")
	if err != nil {
		f.Fatal(err)
	}
	whole, err := NewManifest(l, backup("a", 9, start)).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte("null"))
	f.Add([]byte(`{"format":1,"lineage":"one","name":"a","revision":1e99}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := DecodeManifest(l, "a", content)
		if err != nil {
			return
		}
		if kind, name, digest := l.Parse(l.Snapshot(m.Name, m.SHA256)); kind != SnapshotObject || name != "a" || digest != m.SHA256 {
			t.Errorf("%q is accepted, and leads to %s", content, l.Snapshot(m.Name, m.SHA256))
		}
		DecodeVerification(m, content)
	})
}
