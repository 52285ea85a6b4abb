package keychange

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Drive is what one reconcile does about the keys with which servers encrypt what they store: it
// begins a change of them, hands it to the loop of operations, and says what one waits for.
type Drive struct {
	pass.Pass
	// Access is the way to the API servers, and Input what they are rendered from.
	Access servers.Access
	Input  render.Input
	// Backups are those of the registry, and Unread is true where not all could be read.
	Backups []*operatorv1alpha1.ClusterRegistryBackup
	Unread  bool
	// Walks are how far clusters were stored again under other keys, of all registries.
	Walks *Walks
}

// Read reads the keys with which the servers encrypt what they store. Without the record of
// these nothing may be rendered.
func Read(ctx context.Context, p pass.Pass) (keyring.Found, error) {
	if p.Registry.Spec.Etcd.External != nil {
		return keyring.Found{}, nil
	}
	if p.Identity.Err != nil {
		if p.Before.Encryption != nil || p.Registry.Spec.Server.Encryption != nil {
			return keyring.Found{Held: verdict.Waiting(operatorv1alpha1.ReasonEncryptionInvalid, "the record of the keys in use can't be read, and no server is made or changed: %s", p.Identity.Err)}, nil
		}
		return keyring.Found{}, nil
	}
	found := keyring.Read(ctx, p.Objects, p.Identity.Record)
	if found.Unrecorded && found.InUse != nil && p.Identity.Record != nil && !p.ReadOnly() && p.PausedUntil() == "" {
		if err := p.Identity.Write(ctx, keyring.Record(*p.Identity.Record, found.InUse)); err != nil {
			return keyring.Found{}, fmt.Errorf("record the keys in use: %w", err)
		}
	}
	if found.InUse != nil {
		p.Registry.Status.Encryption = found.Status()
	} // else it is what was last known
	return found, nil
}

// Operation is the change of the keys to encrypt with.
func (d Drive) Operation() operation.Operation {
	return operation.Operation{
		Types:  []operatorv1alpha1.OperationType{operatorv1alpha1.OperationEncryption},
		Writes: true,
		Begin: func(ctx context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			handler, err := d.handler(ctx)
			switch {
			case err != nil:
				return nil, verdict.Failed(err)
			case !handler.Due() || d.ReadOnly() || handler.Busy != "":
				return nil, verdict.Verdict{}
			}
			d.Walks.Forget(d.Registry.UID)
			handler.Operation = handler.Begin()
			return handler.Operation, handler.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(ctx context.Context) (operation.Handler, verdict.Verdict) {
			handler, err := d.handler(ctx)
			switch {
			case err != nil:
				return nil, verdict.Failed(err)
			case d.Keys.InUse == nil || d.Identity.Record == nil:
				return nil, handler.Waiting("it is not known which keys the servers have: %s", d.Keys.Held.Message).In(verdict.Resync)
			}
			return handler, verdict.Verdict{}
		},
		Ended: func(operation.Progress) {
			if keys := d.Keys.InUse; d.Keys.Desired != nil && len(d.state().Former()) == 0 && d.Identity.Record.StoredUnder == keys[0].ID() { // else it ended for want of what is desired
				d.Event(corev1.EventTypeNormal, "KeysChanged", operatorv1alpha1.ConditionServerReady, "clusters are stored under %s, and the servers have no other key than %s", keys[0].ID(), strings.Join(keys.IDs(), ", "))
			}
			d.Walks.Forget(d.Registry.UID)
		},
	}
}

// Notes say what a change of keys that is due waits for, or why there can't be one.
func (d Drive) Notes() []pass.Note {
	if under := d.Registry.Status.Operation; under != nil && under.Type == operatorv1alpha1.OperationEncryption || d.Identity.Record == nil {
		return nil
	}
	h := Handler{State: d.state(), Verified: cmp.Or(d.Identity.Record.StoredUnder, encryption.Identity.ID())}
	message := "the keys to encrypt with are changed when " + operation.Awaits(d.Pass)
	if conflict := h.State.Check(); conflict != nil {
		message = conflict.Error()
	} else if h.State.InUse == nil || !h.Due() {
		return nil
	}
	return []pass.Note{{Condition: operatorv1alpha1.ConditionServerReady, Reason: operatorv1alpha1.ReasonEncryptionPending, Message: message}}
}

// state is what is known of the keys before it is known what the servers have loaded.
func (d Drive) state() encryption.State {
	out := encryption.State{InUse: d.Keys.InUse, Desired: d.Keys.Desired}
	if d.Identity.Record == nil || d.Identity.Record.Lineage == "" {
		return out // there are no backups
	}
	if d.Unread {
		out.Needed = d.Keys.InUse.IDs() // one of them may need any
		return out
	}
	out.Needed = backup.Keys(d.Backups, d.Identity.Record.Lineage)
	return out
}

// handler returns the change of keys that is under way, or could begin.
func (d Drive) handler(ctx context.Context) (Handler, error) {
	h := Handler{Operation: d.Registry.Status.Operation, Now: d.Now, Busy: d.Unsteady(), State: d.state()}
	if h.State.InUse == nil || d.Identity.Record == nil {
		h.State = encryption.State{InUse: encryption.Keys{encryption.Identity}}
		return h, nil // nothing is known to be desired
	}
	h.Verified = cmp.Or(d.Identity.Record.StoredUnder, encryption.Identity.ID())
	h.Verify = func(ctx context.Context) error {
		record := *d.Identity.Record
		record.StoredUnder = d.Keys.InUse[0].ID()
		return d.Identity.Write(ctx, &record)
	}
	h.Record, h.Rewrite, h.Readable = d.record, d.rewrite, d.readable
	if h.Operation == nil {
		return h, nil
	}
	var err error
	if h.Missing, err = d.withoutKeys(ctx); h.Missing != "" || err != nil {
		d.Walks.Forget(d.Registry.UID) // what was found before, such servers may have written again
	}
	return h, err
}

// withoutKeys says which servers don't have the keys in use, those that are terminating among
// them, since these still write; nothing when all have. Not from the cache, which has no
// annotations of pods.
func (d Drive) withoutKeys(ctx context.Context) (string, error) {
	if d.Servers.Rolling != "" {
		return d.Servers.Rolling, nil
	}
	if v, reached := d.Verdict(operatorv1alpha1.ConditionServerReady); !reached || !v.Complete() {
		return operatorv1alpha1.ConditionServerReady + ": " + v.Message, nil
	}
	digest := ""
	if rendered := d.Keys.Render(); rendered != nil {
		digest = rendered.Digest
	}
	missing := "there are no servers"
	err := pages.Each(ctx, d.Live, &corev1.PodList{}, func(page *corev1.PodList) bool {
		for _, pod := range operand.Running(page.Items) {
			if missing = ""; pod.Annotations[operatorv1alpha1.AnnotationEncryption] != digest {
				missing = fmt.Sprintf("pod %s still has the keys of before", pod.Name)
				return false
			}
		}
		return true
	}, client.InNamespace(d.Registry.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: d.Registry.Name, operatorv1alpha1.LabelComponent: operand.ComponentServer})
	if err != nil {
		return "", err
	}
	return missing, nil
}
