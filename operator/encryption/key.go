// Package encryption has what is known of the keys with which a registry's servers encrypt
// what they store: how a user's EncryptionConfiguration is read and checked as the servers do,
// under which key a stored value is, and in which order keys are given to servers (Next), so
// that no server ever finds a value that it has no key for. It reads and writes no object.
package encryption

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

// Resource is the only resource whose objects are encrypted.
const Resource = "clusters.clusterregistry.k8s.io"

// The providers, as an EncryptionConfiguration names them.
const (
	providerIdentity  = "identity"
	providerAESCBC    = "aescbc"
	providerAESGCM    = "aesgcm"
	providerSecretbox = "secretbox"
)

// Key is a key, or what stores without one. Nothing but its ID may be shown.
type Key struct {
	provider, name string
	// secret is in base64. Not even a struct with a key in it, printed by mistake, shows it.
	secret unique.Handle[string]
}

// Identity stores without a key.
var Identity = Key{provider: providerIdentity}

// text returns the secret in base64, nothing for Identity.
func (k Key) text() string {
	if k == Identity {
		return ""
	}
	return k.secret.Value()
}

// ID names a key: its provider and its name, as in "secretbox/2027", or "identity".
func (k Key) ID() string {
	if k == Identity {
		return providerIdentity
	}
	return k.provider + "/" + k.name
}

// String implements fmt.Stringer, so that no secret is printed by mistake.
func (k Key) String() string { return k.ID() }

// GoString implements fmt.GoStringer, for the same reason.
func (k Key) GoString() string { return k.ID() }

// Keys are those that servers are given: the first one writes, and all read.
type Keys []Key

// IDs returns the names of keys, in their order. They may be shown, and are what a backup
// says of the keys that it needs.
func (k Keys) IDs() []string {
	var out []string
	for _, key := range k {
		out = append(out, key.ID())
	}
	return out
}

// Find returns the key of an ID.
func (k Keys) Find(id string) (Key, bool) {
	i := slices.IndexFunc(k, func(key Key) bool { return key.ID() == id })
	if i < 0 {
		return Key{}, false
	}
	return k[i], true
}

// Equal reports whether both are the same keys in the same order.
func (k Keys) Equal(other Keys) bool { return slices.Equal(k, other) }

// Configuration returns the EncryptionConfiguration with which servers have the keys, each a
// provider of its own, so that their order is the one given.
func (k Keys) Configuration() []byte {
	resource := apiserverv1.ResourceConfiguration{Resources: []string{Resource}}
	for _, key := range k {
		keys := []apiserverv1.Key{{Name: key.name, Secret: key.text()}}
		provider := apiserverv1.ProviderConfiguration{}
		switch key.provider {
		case providerAESCBC:
			provider.AESCBC = &apiserverv1.AESConfiguration{Keys: keys}
		case providerAESGCM:
			provider.AESGCM = &apiserverv1.AESConfiguration{Keys: keys}
		case providerSecretbox:
			provider.Secretbox = &apiserverv1.SecretboxConfiguration{Keys: keys}
		default:
			provider.Identity = &apiserverv1.IdentityConfiguration{}
		}
		resource.Providers = append(resource.Providers, provider)
	}
	content, err := json.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{resource}})
	if err != nil {
		panic(err) // no text is wrong in JSON
	}
	return content
}

// Digest identifies keys and their order. No key can be derived from it.
func (k Keys) Digest() string { return Digest(k.Configuration()) }

// Digest identifies what Configuration returned, by its bytes: how a later version of this
// program encodes the same keys does not matter.
func Digest(configuration []byte) string {
	sum := sha256.Sum256(configuration)
	return hex.EncodeToString(sum[:8])
}

// encrypted begins what is stored under any key.
var encrypted = []byte("k8s:enc:")

// Under returns the ID of the key that a stored value needs: k8s:enc:PROVIDER:v1:NAME: is
// what it begins with. Of a value that no provider of ours has stored, it is what is there in
// place of an ID, which no key has.
func Under(content []byte) string {
	rest, is := bytes.CutPrefix(content, encrypted)
	if !is {
		return Identity.ID()
	}
	parts := strings.SplitN(string(rest[:min(len(rest), 256)]), ":", 4)
	if len(parts) < 4 || parts[1] != "v1" {
		return strings.ToValidUTF8(strings.Join(parts[:min(len(parts), 2)], ":"), "?")
	}
	return parts[0] + "/" + parts[2]
}
