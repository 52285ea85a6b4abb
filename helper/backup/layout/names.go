// Package layout says where in a store the backups of registries are, what is known of
// each, and which of them may go. It reads and writes nothing: it can be tested to the
// last case.
//
// A store may hold the backups of many registries, and other things. All that belongs to
// one lineage, which is one etcd from its first write to its end, is below one directory:
//
//	PREFIX/LINEAGE/lineage.json              whose lineage it is
//	PREFIX/LINEAGE/NAME/SHA256.db            a snapshot, named by its own checksum
//	PREFIX/LINEAGE/NAME/manifest.json        what the snapshot is
//	PREFIX/LINEAGE/NAME/verification.json    how its last verification ended
//
// A backup exists as soon as its manifest does, which is written last and never changed. A
// snapshot without a manifest is what an interrupted backup has left. A restored etcd
// begins a lineage of its own, and so never writes where another one did.
package layout

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	label   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	segment = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	digest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

const (
	descriptorFile   = "lineage.json"
	manifestFile     = "manifest.json"
	verificationFile = "verification.json"
	snapshotSuffix   = ".db"
)

// Lineage is the directory of one lineage.
type Lineage struct{ prefix, id string }

// NewLineage returns the lineage of an ID below a prefix, which may be empty.
func NewLineage(prefix, id string) (Lineage, error) {
	if prefix != "" {
		for part := range strings.SplitSeq(prefix, "/") {
			if !segment.MatchString(part) {
				return Lineage{}, fmt.Errorf("%q can't be the prefix of backups: it has one or more parts with '/' between them, each of letters, digits, '_', '-' and '.', and none begins with '-' or '.'", prefix)
			}
		}
	}
	if !label.MatchString(id) {
		return Lineage{}, fmt.Errorf("%q can't be the ID of a lineage: it has up to 63 lower case letters, digits and '-', and begins and ends with a letter or digit", id)
	}
	return Lineage{prefix, id}, nil
}

// CheckName returns why a name can't be that of a backup; nil if it can.
func CheckName(name string) error {
	if !label.MatchString(name) {
		return fmt.Errorf("%q can't be the name of a backup: it has up to 63 lower case letters, digits and '-', and begins and ends with a letter or digit", name)
	}
	return nil
}

// ID returns the lineage's ID.
func (l Lineage) ID() string { return l.id }

// Directory returns what the keys of all objects of the lineage begin with. It ends with a
// slash.
func (l Lineage) Directory() string { return path.Join(l.prefix, l.id) + "/" }

// Descriptor returns the key of the object that says whose lineage it is.
func (l Lineage) Descriptor() string { return l.Directory() + descriptorFile }

// Manifest returns the key of a backup's manifest.
func (l Lineage) Manifest(name string) string { return l.Directory() + name + "/" + manifestFile }

// Verification returns the key of the object that says how the last verification of a
// backup ended.
func (l Lineage) Verification(name string) string {
	return l.Directory() + name + "/" + verificationFile
}

// Snapshot returns the key of a backup's snapshot with the given checksum.
func (l Lineage) Snapshot(name, sha256 string) string {
	return l.Directory() + name + "/" + sha256 + snapshotSuffix
}

// Kind is what an object is.
type Kind int

// The kinds of objects.
const (
	// Foreign is an object that this package has no name for. It is left alone.
	Foreign Kind = iota
	// ManifestObject is a backup's manifest.
	ManifestObject
	// VerificationObject says how the last verification of a backup ended.
	VerificationObject
	// SnapshotObject is a snapshot.
	SnapshotObject
)

// Parse says what the object with a key is, and to which backup it belongs; the checksum
// is that of a snapshot.
func (l Lineage) Parse(key string) (kind Kind, name, sha256 string) {
	rest, below := strings.CutPrefix(key, l.Directory())
	name, file, inside := strings.Cut(rest, "/")
	if !below || !inside || !label.MatchString(name) {
		return Foreign, "", ""
	}
	if sum, is := strings.CutSuffix(file, snapshotSuffix); is && digest.MatchString(sum) {
		return SnapshotObject, name, sum
	}
	switch file {
	case manifestFile:
		return ManifestObject, name, ""
	case verificationFile:
		return VerificationObject, name, ""
	}
	return Foreign, "", ""
}
