package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/backup/store"
	"github.com/clusterregistry/operator/internal/contract"
)

var start = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

// archive opens a lineage in a directory.
func archive(t *testing.T, dir, id string) Archive {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Kind: store.Directory, Bucket: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l, err := layout.NewLineage("prod", id)
	if err != nil {
		t.Fatal(err)
	}
	return Archive{Store: s, Lineage: l}
}

// file writes a file.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func taken(name string, revision int64) contract.Backup {
	return contract.Backup{
		Name: name, ID: "uid-" + name, Time: start.Add(time.Duration(revision) * time.Hour), Revision: revision, EtcdVersion: "3.7.3", Release: "v0.4.0",
		Content: contract.Content{Keys: map[string]int64{"clusters": revision}, HighestModRevision: revision},
	}
}

// upload makes a backup, whose content is its name.
func (a Archive) mustUpload(t *testing.T, name string, revision int64) layout.Backup {
	t.Helper()
	b, err := a.Upload(t.Context(), file(t, "the content of "+name), taken(name, revision))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (a Archive) names(t *testing.T) string {
	t.Helper()
	have, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range have.Backups {
		out = append(out, b.Name)
	}
	for _, u := range have.Unreadable {
		out = append(out, "!"+u.Name)
	}
	return strings.Join(out, " ")
}

// keys returns all objects of the directory.
func keys(t *testing.T, a Archive) []string {
	t.Helper()
	found, err := a.Store.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range found {
		out = append(out, o.Key)
	}
	return out
}

func TestUpload(t *testing.T) {
	a := archive(t, t.TempDir(), "one")
	if err := a.Check(t.Context(), "default/fleet"); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context(), "default/fleet"); err != nil {
		t.Errorf("checked again: %v", err)
	}
	first := a.mustUpload(t, "first", 1)
	a.mustUpload(t, "second", 2)
	if got := a.names(t); got != "second first" {
		t.Errorf("listed are %s", got)
	}
	if report := a.Report(first); report.Name != "first" || report.Bytes != 20 || !strings.HasSuffix(report.Location, "/prod/one/first/manifest.json") || report.VerifiedTime != nil || report.Unchanged {
		t.Errorf("reported is %+v", report)
	}
	to := filepath.Join(t.TempDir(), "fetched.db")
	if err := a.Fetch(t.Context(), first, to); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(to); err != nil || string(content) != "the content of first" {
		t.Errorf("fetched is %q, %v", content, err)
	}
	if err := a.Fetch(t.Context(), first, to); !errors.Is(err, os.ErrExist) {
		t.Errorf("fetched onto a file: %v", err)
	}
	for _, name := range []string{"", "../two/x", "lineage.json"} {
		if _, err := a.Find(t.Context(), name); err == nil || !strings.Contains(err.Error(), "can't be the name of a backup") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestUploadAgain begins again where an upload was killed: in each state that it can
// leave, with the same snapshot and with a newer one.
func TestUploadAgain(t *testing.T) {
	other := strings.Repeat("0a", 32)
	for reason, test := range map[string]struct {
		before func(t *testing.T, a Archive)
		says   string
	}{
		"before anything was written": {func(*testing.T, Archive) {}, ""},
		"when the snapshot was written": {func(t *testing.T, a Archive) {
			b := a.mustUpload(t, "b", 1)
			must(t, a.Store.Delete(t.Context(), a.Lineage.Manifest("b")))
			if !slices.Contains(keys(t, a), a.Lineage.Snapshot("b", b.SHA256)) || a.names(t) != "" {
				t.Error("a backup without a manifest is listed, or its snapshot is gone")
			}
		}, ""},
		"when another snapshot was written": {func(t *testing.T, a Archive) {
			must(t, a.Store.Put(t.Context(), a.Lineage.Snapshot("b", other), strings.NewReader("an earlier one")))
		}, ""},
		"when all was done": {func(t *testing.T, a Archive) { a.mustUpload(t, "b", 1) }, ""},
		"by another request": {func(t *testing.T, a Archive) {
			b := taken("b", 1)
			b.ID = "another"
			_, err := a.Upload(t.Context(), file(t, "other content"), b)
			must(t, err)
		}, "there is already a backup b, which another request (another) took at 2026-03-01T04:00:00Z: choose another name"},
		"onto a snapshot that the store has damaged": {func(t *testing.T, a Archive) {
			b := a.mustUpload(t, "b", 1)
			must(t, a.Store.Delete(t.Context(), a.Lineage.Manifest("b")))
			must(t, a.Store.Replace(t.Context(), a.Lineage.Snapshot("b", b.SHA256), []byte("damaged")))
		}, "damages data; it is removed"},
		"onto a damaged manifest": {func(t *testing.T, a Archive) {
			must(t, a.Store.Replace(t.Context(), a.Lineage.Manifest("b"), []byte("{")))
		}, "not a valid manifest"},
	} {
		a := archive(t, t.TempDir(), "one")
		test.before(t, a)
		got, err := a.Upload(t.Context(), file(t, "the content of b"), taken("b", 1))
		if test.says == "" && (err != nil || got.Name != "b" || a.names(t) != "b") {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
		if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, want %s", reason, err, test.says)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamaged offers nothing whose parts don't fit together.
func TestDamaged(t *testing.T) {
	a := archive(t, t.TempDir(), "one")
	b := a.mustUpload(t, "b", 1)
	a.mustUpload(t, "c", 2)
	damaged := new(DamagedError)
	must(t, a.Store.Replace(t.Context(), a.Lineage.Snapshot("b", b.SHA256), []byte("the content of B")))
	to := filepath.Join(t.TempDir(), "x")
	if err := a.Fetch(t.Context(), b, to); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "and was saved with "+b.SHA256) {
		t.Errorf("other content: %v", err)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
	must(t, a.Store.Delete(t.Context(), a.Lineage.Snapshot("b", b.SHA256)))
	if err := a.Fetch(t.Context(), b, to); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("no content: %v", err)
	}
	content, err := a.Store.Read(t.Context(), a.Lineage.Manifest("c"), layout.MaxBytes)
	must(t, err)
	must(t, a.Store.Put(t.Context(), a.Lineage.Manifest("d"), bytes.NewReader(content)))
	if got := a.names(t); got != "c !b !d" {
		t.Errorf("listed are %s", got)
	}
	for _, name := range []string{"b", "d"} {
		if _, err := a.Choose(t.Context(), layout.Choice{Name: name}); err == nil || !strings.Contains(err.Error(), "backup "+name+" can't be used: ") {
			t.Errorf("%s is chosen: %v", name, err)
		}
	}
	got, err := a.Choose(t.Context(), layout.Choice{})
	if err != nil || got.Name != "c" || len(got.PassedOver) != 1 || !strings.HasPrefix(got.PassedOver[0], "d: ") || !strings.Contains(got.PassedOver[0], `it is of backup "c", not "d"`) {
		t.Errorf("chosen is %s, past %q, %v", got.Name, got.PassedOver, err)
	}
	if got, err := a.Choose(t.Context(), layout.Choice{Name: "c"}); err != nil || got.Name != "c" || got.PassedOver != nil {
		t.Errorf("chosen by name is %s, past %q, %v", got.Name, got.PassedOver, err)
	}
	if _, err := a.Choose(t.Context(), layout.Choice{Name: "x"}); err == nil || !strings.Contains(err.Error(), "/prod/one/: there is no backup x") {
		t.Errorf("chosen is one that is not there: %v", err)
	}
}

// TestPassedOver says which newer backups are not chosen, since they can't be used.
func TestPassedOver(t *testing.T) {
	dir := t.TempDir()
	a := archive(t, dir, "one")
	written := func(name string, hour int) { // by the store's clock
		path := filepath.Join(dir, a.Lineage.Manifest(name))
		must(t, os.Chtimes(path, start.Add(time.Duration(hour)*time.Hour), start.Add(time.Duration(hour)*time.Hour)))
	}
	for i, name := range []string{"old", "good", "damaged", "unreadable", "newest"} {
		b := a.mustUpload(t, name, int64(i+1))
		switch name {
		case "old", "unreadable":
			must(t, a.Store.Replace(t.Context(), a.Lineage.Manifest(name), []byte("{")))
		case "damaged":
			content, err := layout.Verification{SHA256: b.SHA256, Time: b.Time, EtcdVersion: "3.7.3", Damage: "its keys differ"}.Encode()
			must(t, err)
			must(t, a.Store.Put(t.Context(), a.Lineage.Verification(name), bytes.NewReader(content)))
		}
		written(name, i+1)
	}
	at := func(hour int) layout.Choice { return layout.Choice{Before: start.Add(time.Duration(hour) * time.Hour)} }
	for _, test := range []struct {
		reason string
		choice layout.Choice
		want   string
		over   string
	}{
		{"the newest can be used", layout.Choice{}, "newest", ""},
		{"two before a time can't", at(4), "good", "damaged is damaged: its keys differ; unreadable: "},
		{"one before a time can't", at(3), "good", "damaged is damaged: its keys differ"},
		{"what is older was not meant", at(2), "good", ""},
	} {
		got, err := a.Choose(t.Context(), test.choice)
		if said := strings.Join(got.PassedOver, "; "); err != nil || got.Name != test.want || !strings.HasPrefix(said, test.over) || (said == "") != (test.over == "") {
			t.Errorf("%s: %s, past %q, %v", test.reason, got.Name, said, err)
		}
	}
	if _, err := a.Choose(t.Context(), at(1)); err == nil || !strings.Contains(err.Error(), "there is no usable backup from before") || !strings.Contains(err.Error(), "; can't be used: old: ") {
		t.Errorf("none can be used: %v", err)
	}
}

func TestDifferences(t *testing.T) {
	saved := contract.Content{Keys: map[string]int64{"clusters": 3, "roles": 1}, HighestModRevision: 9}
	for _, test := range []struct {
		found contract.Content
		want  string
	}{
		{contract.Content{Keys: map[string]int64{"clusters": 3, "roles": 1}, HighestModRevision: 9}, ""},
		{contract.Content{Keys: map[string]int64{"clusters": 2, "others": 4}, HighestModRevision: 9}, "2 keys of clusters in place of 3, 4 keys of others in place of 0, 0 keys of roles in place of 1"},
		{contract.Content{Keys: map[string]int64{"clusters": 3, "roles": 1}, HighestModRevision: 8}, "revision 8 of the newest change in place of 9"},
	} {
		if got := Differences(saved, test.found); got != test.want {
			t.Errorf("%+v: %q, want %q", test.found, got, test.want)
		}
	}
	if got := Differences(contract.Content{}, contract.Content{}); got != "" {
		t.Errorf("of nothing and nothing: %q", got)
	}
}

// FuzzDamaged lists and fetches what others may have stored in the place of a manifest and
// of its snapshot: nothing but what was saved is ever offered, and nothing is left of the rest.
func FuzzDamaged(f *testing.F) {
	const saved = "the content of b"
	l, err := layout.NewLineage("prod", "one")
	if err != nil {
		f.Fatal(err)
	}
	b := taken("b", 1)
	sum := sha256.Sum256([]byte(saved))
	b.SHA256, b.Bytes = hex.EncodeToString(sum[:]), int64(len(saved))
	manifest, err := layout.NewManifest(l, b).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(manifest, []byte(saved))
	f.Add(manifest, []byte("the content of B"))
	f.Add(manifest, []byte(saved+"x"))
	f.Add(manifest, []byte(saved[1:]))
	f.Add(manifest, []byte{})
	f.Add(manifest[:len(manifest)/2], []byte(saved))
	f.Add(bytes.Replace(manifest, []byte(`"bytes": 16`), []byte(`"bytes": 15`), 1), []byte(saved))
	f.Add(bytes.Replace(manifest, []byte(`"sha256": "`), []byte(`"sha256": "../`), 1), []byte(saved))
	f.Add([]byte("null"), []byte(saved))
	f.Add([]byte{}, []byte(saved))
	f.Fuzz(func(t *testing.T, manifest, snapshot []byte) {
		a := archive(t, t.TempDir(), "one")
		must(t, a.Store.Replace(t.Context(), l.Manifest("b"), manifest))
		must(t, a.Store.Replace(t.Context(), l.Snapshot("b", b.SHA256), snapshot))
		have, err := a.List(t.Context())
		if err != nil || len(have.Backups)+len(have.Unreadable) != 1 {
			t.Fatalf("listed is %+v, %v", have, err)
		}
		to := filepath.Join(t.TempDir(), "x")
		chosen, err := a.Choose(t.Context(), layout.Choice{})
		if err == nil {
			err = a.Fetch(t.Context(), chosen.Backup, to)
		}
		content, readErr := os.ReadFile(to)
		if err == nil && (readErr != nil || string(content) != saved || chosen.SHA256 != b.SHA256) {
			t.Errorf("%q and %q are offered as %q, %v", manifest, snapshot, content, readErr)
		}
		if err != nil && !os.IsNotExist(readErr) {
			t.Errorf("%v, and %q is left: %v", err, content, readErr)
		}
	})
}
