// Package encryptiontest makes keys for the tests of what encrypts with them.
package encryptiontest

import (
	"testing"

	"github.com/clusterregistry/operator/operator/encryption"
)

// Key returns a key of a name, alone.
func Key(t *testing.T, name string) encryption.Keys {
	t.Helper()
	keys, err := encryption.Parse([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n  - secretbox: {keys: [{name: " + name + ", secret: c2VjcmV0IGlzIHNlY3VyZSBhbmQgaXMgMzIgYnl0ZXM=}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
