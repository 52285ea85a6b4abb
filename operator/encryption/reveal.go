package encryption

import (
	"context"
	"crypto/aes"
	"encoding/base64"
	"fmt"

	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"
)

// A Reader reads what servers have stored.
type Reader struct{ transformer value.Transformer }

// Reader returns a reader that has the keys.
func (k Keys) Reader() (Reader, error) {
	var all []value.PrefixTransformer
	for _, key := range k {
		transformer, err := key.transformer()
		if err != nil {
			return Reader{}, fmt.Errorf("key %s: %w", key.ID(), err)
		}
		prefix := ""
		if key != Identity {
			prefix = string(encrypted) + key.provider + ":v1:" + key.name + ":"
		}
		all = append(all, value.PrefixTransformer{Prefix: []byte(prefix), Transformer: transformer})
	}
	return Reader{value.NewPrefixTransformers(fmt.Errorf("none of the keys in use is that of it"), all...)}, nil
}

// Read returns what a server has stored under a key of etcd, as it was before it was encrypted.
// The error names the key that is missing, or says that the value is damaged.
func (r Reader) Read(ctx context.Context, at string, content []byte) ([]byte, error) {
	out, _, err := r.transformer.TransformFromStorage(ctx, content, value.DefaultContext(at))
	if err != nil {
		return nil, fmt.Errorf("is stored under key %s, and can't be decrypted: %w", Under(content), err)
	}
	return out, nil
}

// transformer returns what the servers use for a key.
func (k Key) transformer() (value.Transformer, error) {
	if k == Identity {
		return identity.NewEncryptCheckTransformer(), nil
	}
	secret, err := base64.StdEncoding.DecodeString(k.text())
	if err != nil {
		return nil, fmt.Errorf("its secret is not in base64")
	}
	if k.provider == providerSecretbox {
		if len(secret) != 32 {
			return nil, fmt.Errorf("its secret has %d bytes, not 32", len(secret))
		}
		return secretbox.NewSecretboxTransformer([32]byte(secret)), nil
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	if k.provider == providerAESGCM {
		return aestransformer.NewGCMTransformer(block)
	}
	return aestransformer.NewCBCTransformer(block), nil
}
