package contract

import "time"

// Backup is what is known of a backup of a registry's etcd. It is a part of the manifest
// beside the backup in its store, which programs of years later read: a field may be
// added, none may change its meaning.
type Backup struct {
	// Name is that of the backup, unique in its lineage.
	Name string `json:"name"`
	// ID says for whom the backup was taken: it is the UID of that object. A second
	// backup of the same name has another one.
	ID string `json:"id"`
	// Time is when it was taken, in UTC.
	Time time.Time `json:"time"`
	// Revision is etcd's revision that the backup holds. It is not below that of any
	// write which etcd acknowledged before Time.
	Revision int64 `json:"revision"`
	// Bytes is the size of the snapshot's file, and SHA256 its checksum in hexadecimal.
	// Both include the checksum that etcd appends.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// EtcdVersion is that of the member that it was taken from, such as 3.7.3, and Release
	// that of the registry, such as v0.2.0.
	EtcdVersion string `json:"etcdVersion"`
	Release     string `json:"release"`
	Content
	// Hash is etcd's own hash of all keys, on which its members agreed.
	Hash KeysHash `json:"hash"`
}

// Content says what is below the prefix of a registry's keys. Two of the same etcd are
// equal only if every key has the same value in both.
type Content struct {
	// Keys are the numbers of keys by resource, such as clusters.
	Keys map[string]int64 `json:"keys"`
	// HighestModRevision is the revision of the newest change that is left in a key; zero
	// when there is none.
	HighestModRevision int64 `json:"highestModRevision"`
}

// KeysHash is the answer of etcd's HashKV at the revision of a backup.
type KeysHash struct {
	Hash uint32 `json:"hash"`
	// CompactRevision is the revision to which etcd was compacted. Hashes that were made
	// after different compactions can't be compared.
	CompactRevision int64 `json:"compactRevision"`
	// Members is how many members had that hash.
	Members int `json:"members"`
}

// BackupReport is what the helper reports of one backup, as a line of JSON in the
// termination message of its container, where the operator reads it.
type BackupReport struct {
	Backup
	// Location is where the manifest is, such as
	// s3://backups/prod/0b9c4b52/fleet-20260301-0300/manifest.json.
	Location string `json:"location"`
	// Unchanged is true when no backup was taken, since nothing has changed since this one.
	Unchanged bool `json:"unchanged,omitempty"`
	// VerifiedTime is when it was verified last; absent when it never was.
	VerifiedTime *time.Time `json:"verifiedTime,omitempty"`
	// EncryptionKeys are the names of the keys that values are encrypted with, each with its
	// provider, such as aescbc/key1. They are known once a server has verified it.
	EncryptionKeys []string `json:"encryptionKeys,omitempty"`
	// PassedOver says, of one that was chosen as the newest, why some of those that are newer
	// can't be used. Each begins with the name.
	PassedOver []string `json:"passedOver,omitempty"`
}

// BackupDamaged is the exit code of the helper when a backup was verified and can't be
// used. No other attempt will find otherwise.
const BackupDamaged = 65

// StoreUnreachable is the exit code of the helper when the store can't be reached: it does not
// answer, or can't answer now. One that refuses can be reached.
const StoreUnreachable = 75

// BackupList is what the helper reports of a lineage.
type BackupList struct {
	// Count is how many backups there are that can be read.
	Count int `json:"count"`
	// OldestTime is when the oldest of them was taken; absent when there is none.
	OldestTime *time.Time `json:"oldestTime,omitempty"`
	// Newest are a few of them, the newest first.
	Newest []BackupReport `json:"newest,omitempty"`
	// Unreadable are the names of a few that can't be read.
	Unreadable []string `json:"unreadable,omitempty"`
}

// BackupsRemoved is what the helper reports of backups that it has removed.
type BackupsRemoved struct {
	Names []string `json:"names,omitempty"`
	// Failure says why others could not be removed, empty where there are none.
	Failure string `json:"failure,omitempty"`
}
