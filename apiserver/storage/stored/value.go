package stored

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/storage/value"

	"github.com/clusterregistry/operator/internal/contract"
)

// most is how many values that can't be read are reported one by one.
const most = 10

// findings are what was found so far.
type findings struct {
	contract.Stored
	// bad are the resources that have values which can't be read.
	bad []string
}

// unreadable reports whether a resource has values that can't be read.
func (f *findings) unreadable(resource string) bool { return slices.Contains(f.bad, resource) }

// add reads the value of a key.
func (f *findings) add(ctx context.Context, resources []Resource, prefix, key string, content []byte) {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	encryptedWith := encryptionKey(content)
	if encryptedWith != "" && !slices.Contains(f.EncryptionKeys, encryptedWith) {
		f.EncryptionKeys = append(f.EncryptionKeys, encryptedWith)
	}
	i := slices.IndexFunc(resources, func(r Resource) bool { return r.Name() == name })
	switch {
	case name == contract.LockResource:
		return // it goes with its lease, and no one lists it
	case i < 0:
		if f.Unserved == nil {
			f.Unserved = map[string]int64{}
		}
		f.Unserved[name]++
		return
	}
	reason := read(ctx, resources[i], key, content)
	if reason == "" {
		f.Objects[name]++
		return
	}
	if !f.unreadable(name) {
		f.bad = append(f.bad, name)
	}
	if reason == contract.NotDecrypted && encryptedWith != "" && !slices.Contains(f.MissingKeys, encryptedWith) {
		f.MissingKeys = append(f.MissingKeys, encryptedWith)
	}
	if f.Unreadable++; len(f.Examples) < most {
		f.Examples = append(f.Examples, contract.Unreadable{Key: key, Reason: reason, EncryptionKey: encryptedWith})
	}
}

// read returns the reason for which a server can't read a value, empty when it can. The
// errors themselves may quote what is stored.
func read(ctx context.Context, r Resource, key string, content []byte) string {
	if transformer := r.Config.Transformer; transformer != nil {
		plain, _, err := transformer.TransformFromStorage(ctx, content, value.DefaultContext(key))
		if err != nil {
			return contract.NotDecrypted
		}
		content = plain
	}
	if encryptionKey(content) != "" {
		return contract.NotDecrypted // there is no encryption configuration
	}
	if _, _, err := r.Config.Codec.Decode(content, nil, r.Store.NewFunc()); err != nil {
		return contract.NotDecoded
	}
	return ""
}

// encrypted is how a value begins that a server has encrypted: with the provider, its
// version and the name of the key.
var encrypted = regexp.MustCompile(`^k8s:enc:([a-z0-9]+):v[0-9]+:([^:]+):`)

// encryptionKey returns the provider and the name of the key that a value is encrypted
// with, empty when it is not encrypted.
func encryptionKey(content []byte) string {
	match := encrypted.FindSubmatch(content[:min(len(content), 1024)])
	if match == nil {
		return ""
	}
	return string(match[1]) + "/" + string(match[2])
}
