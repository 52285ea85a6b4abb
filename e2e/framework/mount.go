package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Mount is a certificate with its key as kubelet mounts a Secret: the files are
// links into a folder that is replaced as a whole.
type Mount struct {
	// Pair are the files; their paths never change.
	Pair

	t        *testing.T
	dir      string
	versions int
}

// NewMount returns a mount that holds a copy of the given pair.
func NewMount(t *testing.T, pair Pair) *Mount {
	t.Helper()
	dir := t.TempDir()
	m := &Mount{t: t, dir: dir, Pair: Pair{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}}
	m.Replace(pair)
	for _, file := range []string{m.Cert, m.Key} {
		m.must(os.Symlink(filepath.Join("..data", filepath.Base(file)), file))
	}
	return m
}

// Replace puts a copy of another pair in place of the one that is there, and
// removes that one.
func (m *Mount) Replace(pair Pair) {
	m.t.Helper()
	old := filepath.Join(m.dir, fmt.Sprintf("..%d", m.versions))
	m.versions++
	version := fmt.Sprintf("..%d", m.versions)
	m.must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	for name, from := range map[string]string{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		content, err := os.ReadFile(from)
		m.must(err)
		m.must(os.WriteFile(filepath.Join(m.dir, version, name), content, 0o600))
	}
	next := filepath.Join(m.dir, "..data_tmp")
	m.must(os.Symlink(version, next))
	m.must(os.Rename(next, filepath.Join(m.dir, "..data")))
	m.must(os.RemoveAll(old))
}

func (m *Mount) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}
