package keychange

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/render"
)

// rewriteTime is for how long clusters are stored again before the rest of the registry is
// reconciled again. One request may take longer.
const rewriteTime = 5 * time.Second

// record has servers given other keys from the next reconcile on. The Secret with these is
// made first: a record without it would leave servers without any.
func (d Drive) record(ctx context.Context, keys encryption.Keys) error {
	// What was found with the keys of before is of no use with others, nor when they return.
	d.Walks.Forget(d.Registry.UID)
	in := d.Input
	if in.Encryption = keyring.Rendered(keys); in.Encryption != nil {
		rendered, err := render.Render(in)
		if err != nil {
			return err
		}
		for _, object := range rendered.Stages[render.StageServer] {
			if object.GetKind() == "Secret" && object.GetName() == d.Name(contract.EncryptionSuffix)+"-"+in.Encryption.Digest {
				if err := d.Apply(ctx, object); err != nil {
					return err
				}
			}
		}
	}
	return d.Identity.Write(ctx, keyring.Record(*d.Identity.Record, keys))
}

// rewrite has clusters stored again under the key that writes.
func (d Drive) rewrite(ctx context.Context) (map[string]int, string, error) {
	registry, err := d.Access.RegistryClient(ctx, d.Authorities.Serving.Bundle())
	if err != nil {
		return nil, "0", err
	}
	until := time.Now().Add(rewriteTime)
	walk := d.Walks.Of(d.Registry.UID)
	next, stored, progress, err := walk.Continue(ctx, d.Keys.InUse, Storage{
		Read: func(ctx context.Context, after string, each func(string, []byte) error) (etcd.Stored, error) {
			return d.Members.Access.Stored(ctx, contract.ObjectPrefix(v1beta1.GroupName, "clusters"), after, each)
		},
		Rewrite: func(ctx context.Context, name string) error { return registry.Rewrite(ctx, d.Release.Stores, name) },
		Over:    func() bool { return time.Now().After(until) },
	})
	d.Walks.store(d.Registry.UID, next)
	return stored, progress, err
}

// readable says until when clients can read what was stored under other keys from etcd's history,
// as by a watch that continues: servers without these keys would fail it.
func (d Drive) readable(ctx context.Context) (string, error) {
	revision := d.Walks.Of(d.Registry.UID).Revision()
	if revision == 0 {
		return "Waiting for the stored clusters to be read again", nil
	}
	compacted, err := d.Members.Access.Compacted(ctx, revision)
	if err != nil || compacted {
		return "", err
	}
	return fmt.Sprintf("Waiting for etcd's history before revision %d, which has values under the former keys, to be compacted: the servers do that within about ten minutes", revision), nil
}

// ReadClear has the servers read what is stored in clear, too, where they do not yet: a copy of
// the data that etcd is to continue with may have clusters from before these were encrypted.
func (d Drive) ReadClear(ctx context.Context) error {
	keys := d.Keys.InUse
	if _, has := keys.Find(encryption.Identity.ID()); has || keyring.Rendered(keys) == nil {
		return nil
	}
	return d.record(ctx, append(keys[:len(keys):len(keys)], encryption.Identity))
}
