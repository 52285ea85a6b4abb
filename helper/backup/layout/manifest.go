package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/clusterregistry/operator/internal/contract"
)

// format is the version of manifests that this program writes, and the newest that it
// reads. It is raised when an older program would take a manifest for what it isn't.
const format = 1

// MaxBytes is the size of the largest manifest or other description that is read, in
// bytes.
const MaxBytes = 64 << 10

// Descriptor says whose lineage a directory holds, for people who find it.
type Descriptor struct {
	Lineage string `json:"lineage"`
	// Registry is the namespace and the name of the ClusterRegistry, with a slash between.
	Registry string `json:"registry"`
}

// Encode returns the descriptor as it is stored.
func (d Descriptor) Encode() ([]byte, error) { return encode(d) }

// Manifest makes a snapshot in a store a backup.
type Manifest struct {
	Format  int    `json:"format"`
	Lineage string `json:"lineage"`
	contract.Backup
}

// NewManifest returns the manifest of a backup of a lineage.
func NewManifest(l Lineage, b contract.Backup) Manifest {
	return Manifest{Format: format, Lineage: l.id, Backup: b}
}

// Encode returns the manifest as it is stored. It fails when no one could read it again.
func (m Manifest) Encode() ([]byte, error) {
	if err := m.check(m.Lineage, m.Name); err != nil {
		return nil, err
	}
	return encode(m)
}

// DecodeManifest reads the manifest that is stored for a name in a lineage. The error says
// why it can't be used.
func DecodeManifest(l Lineage, name string, content []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return Manifest{}, fmt.Errorf("it is not a valid manifest: %w", err)
	}
	if m.Format > format {
		return Manifest{}, fmt.Errorf("it has format %d, and this program reads up to %d: use a newer release", m.Format, format)
	}
	if err := m.check(l.id, name); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

func (m Manifest) check(lineage, name string) error {
	for _, rule := range []struct {
		holds bool
		says  string
	}{
		{m.Format >= 1, fmt.Sprintf("it has format %d, which never was", m.Format)},
		{m.Lineage == lineage, fmt.Sprintf("it is of lineage %q, not %q", m.Lineage, lineage)},
		{m.Name == name, fmt.Sprintf("it is of backup %q, not %q", m.Name, name)},
		{label.MatchString(m.Name), fmt.Sprintf("%q is not a valid name", m.Name)},
		{m.ID != "", "it has no id"},
		{!m.Time.IsZero(), "it has no time"},
		{m.Revision >= 1, fmt.Sprintf("its revision is %d", m.Revision)},
		{digest.MatchString(m.SHA256), fmt.Sprintf("%q is not a valid SHA-256", m.SHA256)},
		{m.Bytes > 0, fmt.Sprintf("its snapshot has %d bytes", m.Bytes)},
		{m.EtcdVersion != "", "it has no version of etcd"},
		{m.HighestModRevision >= 0 && m.HighestModRevision <= m.Revision, fmt.Sprintf("its newest change is of revision %d, and the snapshot of %d", m.HighestModRevision, m.Revision)},
	} {
		if !rule.holds {
			return errors.New(rule.says)
		}
	}
	for resource, count := range m.Keys {
		if count < 0 {
			return fmt.Errorf("it has %d keys of %s", count, resource)
		}
	}
	return nil
}

// Verification is how the last verification of a backup ended. One that was interrupted
// leaves none.
type Verification struct {
	// SHA256 is that of the snapshot which the manifest names.
	SHA256 string    `json:"sha256"`
	Time   time.Time `json:"time"`
	// EtcdVersion is that of the etcd that the snapshot was restored with.
	EtcdVersion string `json:"etcdVersion"`
	// EncryptionKeys are the names of the keys that values are encrypted with, which a
	// registry needs that is restored from it.
	EncryptionKeys []string `json:"encryptionKeys,omitempty"`
	// Damage says why the backup can't be used; empty when it can.
	Damage string `json:"damage,omitempty"`
}

// Encode returns the verification as it is stored.
func (v Verification) Encode() ([]byte, error) { return encode(v) }

// DecodeVerification reads the verification that is stored beside a manifest. It returns
// nil when it says nothing about this manifest's snapshot: the backup is not verified then.
func DecodeVerification(m Manifest, content []byte) *Verification {
	var v Verification
	if err := json.Unmarshal(content, &v); err != nil || v.SHA256 != m.SHA256 || v.Time.IsZero() {
		return nil
	}
	return &v
}

func encode(value any) ([]byte, error) {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	if content = append(content, '\n'); len(content) > MaxBytes {
		return nil, fmt.Errorf("it would have %d bytes, more than the %d that are read", len(content), MaxBytes)
	}
	return content, nil
}
