package contract

// Stored is what "clusterregistry-apiserver verify-storage" reports of an etcd, as a line of
// JSON: whether a server of that release can read all that a registry has there. It has
// names of keys, never their content.
type Stored struct {
	// Objects are the numbers of objects that the server lists, by resource, such as
	// clusters.
	Objects map[string]int64 `json:"objects"`
	// EncryptionKeys are the names of the keys that values are encrypted with, each with its
	// provider, such as aescbc/key1.
	EncryptionKeys []string `json:"encryptionKeys,omitempty"`
	// Unreadable is how many values can't be read, and Examples are some of them.
	Unreadable int64        `json:"unreadable,omitempty"`
	Examples   []Unreadable `json:"examples,omitempty"`
	// MissingKeys are those of EncryptionKeys with which a value was encrypted that the
	// server can't decrypt.
	MissingKeys []string `json:"missingKeys,omitempty"`
	// Unserved are the numbers of keys of resources that the server does not serve.
	Unserved map[string]int64 `json:"unserved,omitempty"`
}

// Unreadable is a key in etcd whose value a server can't read.
type Unreadable struct {
	Key string `json:"key"`
	// Reason is NotDecrypted or NotDecoded.
	Reason string `json:"reason"`
	// EncryptionKey is the name of the key that the value is encrypted with, as in
	// Stored.EncryptionKeys; empty when it is not encrypted.
	EncryptionKey string `json:"encryptionKey,omitempty"`
}

const (
	// NotDecrypted is the reason for which a value can't be read that no key of the
	// encryption configuration decrypts.
	NotDecrypted = "NotDecrypted"
	// NotDecoded is the reason for which a value can't be read that is no object which the
	// server knows.
	NotDecoded = "NotDecoded"
)
