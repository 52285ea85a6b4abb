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
	out.Desired, err = desired(ctx, o)
	if err != nil {
		out.Held = verdict.Failed(err).In(verdict.Backstop).DegradedIf(true)
		out.Held.Message += "; until then, the servers keep the keys that they have"
	}
	if record == nil || record.Keys == "" {
		if out.Unrecorded = unrecorded(o, record); out.Unrecorded {
			if out.InUse, err = enlisted(ctx, o); err != nil {
				out.Held = verdict.Failed(err).In(verdict.Backstop)
			}
		}
		return out
	}
	if out.InUse, err = inUse(ctx, o, record); err == nil {
		return out
	}
	if out.InUse = recovered(out.Desired, record); out.InUse == nil {
		out.Held = verdict.Failed(err).In(verdict.Backstop)
	}
	return out
}

// Render returns what servers are given, nil for nothing.
func (f Found) Render() *render.Encryption { return Rendered(f.InUse) }

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

// inUse returns the recorded keys, from the operator's own Secret.
func inUse(ctx context.Context, o *operand.Objects, record *etcd.Record) (encryption.Keys, error) {
	name := o.Name(contract.EncryptionSuffix) + "-" + record.Keys
	secret, err := o.Secret(ctx, name)
	if err != nil {
		return nil, err
	}
	lost := func(what string) error {
		return invalidf("Secret %s with the keys in use (%s) %s, and no server is made or changed: restore that Secret, or have %s name a Secret with these keys in this order", name, strings.Join(record.KeyIDs, ", "), what, "spec.server.encryption.secretRef")
	}
	if secret == nil {
		return nil, lost("is gone")
	}
	keys, err := encryption.Parse(secret.Data[configuration])
	if err != nil || keys.Digest() != record.Keys {
		return nil, lost("is damaged")
	}
	return keys, nil
}

// unrecorded reports whether keys were in use of which there is no record any more.
func unrecorded(o *operand.Objects, record *etcd.Record) bool {
	return o.Before.Encryption != nil && (record == nil || len(record.KeyIDs) == 0) && o.Registry.Spec.Etcd.External == nil
}

// enlisted returns the keys that the status names, from the operator's own Secrets.
func enlisted(ctx context.Context, o *operand.Objects) (encryption.Keys, error) {
	names := o.Before.Encryption.Reads
	prefix := o.Name(contract.EncryptionSuffix) + "-"
	for _, reference := range slices.Backward(o.Registry.Status.Inventory) {
		digest, is := strings.CutPrefix(reference.Name, prefix)
		if !is || reference.Kind != "Secret" {
			continue
		}
		keys, err := inUse(ctx, o, &etcd.Record{Keys: digest, KeyIDs: names})
		if err == nil && slices.Equal(keys.IDs(), names) {
			return keys, nil
		}
	}
	return nil, invalidf("the record of the keys in use (%s) is gone, and no Secret %s... has them: no server is made or changed", strings.Join(names, ", "), prefix)
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
