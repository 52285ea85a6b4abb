// Package keyring finds the keys with which a registry's servers encrypt what they store: those
// in use, of which the record of etcd's identity has the digest and a Secret of the operator's
// own the content, and those that the spec asks for. Keys in use outlive what the spec refers to.
package keyring

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// configuration is the key of the operator's Secret.
const configuration = "configuration.json"

// Found are the keys of a registry.
type Found struct {
	// InUse are those that servers are given, nil where that is not known: then no server
	// may be made or changed.
	InUse encryption.Keys
	// Desired are those that the spec asks for, nil where it is not known which these are.
	Desired encryption.Keys
	// Held says what is wrong: Degraded where it is the spec's, Blocked where InUse is not
	// known.
	Held verdict.Verdict
	// Unrecorded is true where the record got lost: InUse is what else is known, and is to be
	// recorded again.
	Unrecorded bool
	// content is what the copy of InUse holds, byte by byte, nil where there is none.
	content []byte
}

// none are the keys of servers that encrypt nothing.
var none = encryption.Keys{encryption.Identity}

// Read reads the keys. There is no record where etcd never formed, or is external.
func Read(ctx context.Context, o *operand.Objects, record *etcd.Record) Found {
	out := read(ctx, o, record)
	if out.Held.State == verdict.Degraded && Rendered(out.InUse) != nil {
		out.Held.Message += ": " + strings.Join(out.InUse.IDs(), ", ") + ", which what is stored may need"
	}
	return out
}

func read(ctx context.Context, o *operand.Objects, record *etcd.Record) Found {
	out := Found{InUse: none}
	var err error
	if out.Desired, err = desired(ctx, o); err != nil {
		out.Held = verdict.Failed(err).In(verdict.Backstop).DegradedIf(true)
		out.Held.Message += "; until then, the servers keep the keys that they have"
		err = nil
	}
	switch {
	case record == nil || len(record.KeyIDs) == 0 && record.Keys == "":
		if out.Unrecorded = unrecorded(o); out.Unrecorded {
			out.InUse, out.content, err = enlisted(ctx, o)
		}
	case record.Keys == "":
		err = plain(o, record)
	default:
		if out.InUse, out.content, err = inUse(ctx, o, record); err != nil {
			if out.InUse = recovered(out.Desired, record); out.InUse != nil {
				err = nil
			}
		}
	}
	if err == nil && !out.Unrecorded {
		err = current(o, out.InUse)
	}
	if err != nil {
		out.InUse, out.content = nil, nil
		out.Held = verdict.Failed(err).In(verdict.Backstop)
	}
	return out
}

// plain returns why a record without a digest of keys can't be taken for that of a registry
// which stores in clear: one that says so names Identity, and nothing else.
func plain(o *operand.Objects, record *etcd.Record) error {
	if slices.Equal(record.KeyIDs, none.IDs()) {
		return nil
	}
	return invalidf("ConfigMap %s, the record of the keys in use, names %s and has no digest of them, as after it was edited, and no server is made or changed: set its key encryption to what follows %s- in the name of the Secret that has these keys in this order",
		o.Name(contract.IdentitySuffix), strings.Join(record.KeyIDs, ", "), o.Name(contract.EncryptionSuffix))
}

// current returns why recorded keys can't be those in use: the record is an old one, or was
// edited. A change of keys never takes away the key that writes: it has another one write
// first, and the status says so before anything follows from that.
func current(o *operand.Objects, recorded encryption.Keys) error {
	known := o.Before.Encryption
	if known == nil || o.Registry.Spec.Etcd.External != nil {
		return nil
	}
	if _, has := recorded.Find(known.Writes); has {
		return nil
	}
	return invalidf("ConfigMap %s, the record of the keys in use, says %s, and what is stored may be under %s, under which the servers wrote last (status.encryption), as after an old record was restored or it was edited: no server is made or changed, and no copy of keys is deleted. Restore the record as it was last; its key encryption is what follows %s- in the name of the Secret with %s, in this order, and encryption-keys are these names with a comma between. If the record is right, remove status.encryption: kubectl -n %s patch clusterregistry %s --subresource=status --type=merge -p '{\"status\":{\"encryption\":null}}'",
		o.Name(contract.IdentitySuffix), strings.Join(recorded.IDs(), ", "), known.Writes, o.Name(contract.EncryptionSuffix), strings.Join(known.Reads, ", "), o.Registry.Namespace, o.Registry.Name)
}

// Render returns what servers are given, nil for nothing. It is the copy as it is, where there
// is one.
func (f Found) Render() *render.Encryption {
	rendered := Rendered(f.InUse)
	if rendered != nil && f.content != nil {
		return &render.Encryption{Configuration: f.content, Digest: encryption.Digest(f.content)}
	}
	return rendered
}

// Reveal returns what decrypts the values that etcd has, nil where nothing is encrypted.
func (f Found) Reveal() func(ctx context.Context, key string, content []byte) ([]byte, error) {
	if f.Render() == nil {
		return nil
	}
	return func(ctx context.Context, key string, content []byte) ([]byte, error) {
		reader, err := f.InUse.Reader()
		if err != nil {
			return nil, err
		}
		return reader.Read(ctx, key, content)
	}
}

// Rendered returns what servers with the given keys are given, nil for nothing.
func Rendered(keys encryption.Keys) *render.Encryption {
	if keys == nil || keys.Equal(none) {
		return nil
	}
	return &render.Encryption{Configuration: keys.Configuration(), Digest: keys.Digest()}
}

// Status names the keys in use, nil for none.
func (f Found) Status() *operatorv1alpha1.EncryptionStatus {
	if Rendered(f.InUse) == nil {
		return nil
	}
	ids := f.InUse.IDs()
	return &operatorv1alpha1.EncryptionStatus{Writes: ids[0], Reads: ids}
}

// unknown is in the record in place of the key that everything is stored under. No key has
// this name.
const unknown = "unknown"

// Record returns a record with keys in use.
func Record(record etcd.Record, keys encryption.Keys) *etcd.Record {
	writes := append(slices.Clone(record.KeyIDs), encryption.Identity.ID())[0]
	if writes != keys[0].ID() {
		record.StoredUnder = unknown // until everything was stored again
	}
	record.Keys = ""
	record.KeyIDs = keys.IDs() // those of none, too: a record that got lost has no such key
	if rendered := Rendered(keys); rendered != nil {
		record.Keys = rendered.Digest
	}
	return &record
}

// invalid is the error of something that a person has to fix.
type invalid struct{ error }

// Reason implements verdict.Expected.
func (invalid) Reason() string { return operatorv1alpha1.ReasonEncryptionInvalid }

func invalidf(format string, args ...any) error { return invalid{fmt.Errorf(format, args...)} }

// desired returns the keys that the spec asks for.
func desired(ctx context.Context, o *operand.Objects) (encryption.Keys, error) {
	const field = "spec.server.encryption.secretRef"
	spec := o.Registry.Spec.Server.Encryption
	if spec == nil {
		return none, nil
	}
	ref := spec.SecretRef
	secret, err := o.Secret(ctx, ref.Name)
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, invalidf("Secret %s with the keys to encrypt with (%s) does not exist", ref.Name, field)
	case secret.Data[ref.Key] == nil:
		return nil, invalidf("Secret %s has no key %s with the keys to encrypt with (%s)", ref.Name, ref.Key, field)
	}
	keys, err := encryption.Parse(secret.Data[ref.Key])
	if err != nil {
		return nil, invalidf("the EncryptionConfiguration in Secret %s, key %s, can't be used: %w", ref.Name, ref.Key, err)
	}
	return keys, nil
}

// inUse returns the recorded keys, from the operator's own Secret, and what that holds.
func inUse(ctx context.Context, o *operand.Objects, record *etcd.Record) (encryption.Keys, []byte, error) {
	name := o.Name(contract.EncryptionSuffix) + "-" + record.Keys
	secret, err := o.Secret(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	lost := func(what string) error {
		return invalidf("Secret %s with the keys in use (%s) %s, and no server is made or changed: restore that Secret, or have %s name a Secret with these keys in this order", name, strings.Join(record.KeyIDs, ", "), what, "spec.server.encryption.secretRef")
	}
	if secret == nil {
		return nil, nil, lost("is gone")
	}
	content := secret.Data[configuration]
	keys, err := encryption.ParseCopy(content)
	if err != nil || encryption.Digest(content) != record.Keys {
		return nil, nil, lost("is damaged")
	}
	return keys, content, nil
}

// unrecorded reports whether keys were in use, where the record says nothing of any.
func unrecorded(o *operand.Objects) bool {
	return o.Before.Encryption != nil && o.Registry.Spec.Etcd.External == nil
}

// enlisted returns the keys that the status names, from the operator's own Secrets, and
// what that one holds.
func enlisted(ctx context.Context, o *operand.Objects) (encryption.Keys, []byte, error) {
	names := o.Before.Encryption.Reads
	prefix := o.Name(contract.EncryptionSuffix) + "-"
	for _, reference := range slices.Backward(o.Registry.Status.Inventory) {
		digest, is := strings.CutPrefix(reference.Name, prefix)
		if !is || reference.Kind != "Secret" {
			continue
		}
		keys, content, err := inUse(ctx, o, &etcd.Record{Keys: digest, KeyIDs: names})
		if err == nil && slices.Equal(keys.IDs(), names) {
			return keys, content, nil
		}
	}
	return nil, nil, invalidf("the record of the keys in use (%s) is gone, and no Secret %s... has them: no server is made or changed; restore that Secret, or ConfigMap %s", strings.Join(names, ", "), prefix, o.Name(contract.IdentitySuffix))
}

// recovered returns the recorded keys out of the desired ones, nil where these are not all of
// them.
func recovered(desired encryption.Keys, record *etcd.Record) encryption.Keys {
	var out encryption.Keys
	for _, id := range record.KeyIDs {
		key, has := desired.Find(id)
		if !has && id == encryption.Identity.ID() {
			key, has = encryption.Identity, true
		}
		if !has {
			return nil
		}
		out = append(out, key)
	}
	if len(out) == 0 || out.Digest() != record.Keys {
		return nil
	}
	return out
}
