package clusterregistry

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/keychange"
	"github.com/clusterregistry/operator/operator/operation/upgrade/migration"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// rewriteTime is for how long clusters are stored again before the rest of the registry is
// reconciled again. One request may take longer.
const rewriteTime = 5 * time.Second

// readKeys reads the keys with which the servers encrypt what they store. Without the record of
// these nothing may be rendered.
func (s *scope) readKeys(ctx context.Context) error {
	if s.Registry.Spec.Etcd.External != nil {
		return nil
	}
	if s.Identity.Err != nil {
		if s.Before.Encryption != nil || s.Registry.Spec.Server.Encryption != nil {
			s.Keys.Held = verdict.Waiting(operatorv1alpha1.ReasonEncryptionInvalid, "the record of the keys in use can't be read, and no server is made or changed: %s", s.Identity.Err)
		}
		return nil
	}
	s.Keys = keyring.Read(ctx, s.Objects, s.Identity.Record)
	if s.Keys.Unrecorded && s.Keys.InUse != nil && s.Identity.Record != nil && !s.ReadOnly() && s.PausedUntil() == "" {
		if err := s.Identity.Write(ctx, keyring.Record(*s.Identity.Record, s.Keys.InUse)); err != nil {
			return fmt.Errorf("record the keys in use: %w", err)
		}
	}
	if s.Keys.InUse != nil {
		s.Registry.Status.Encryption = s.Keys.Status()
	} // else it is what was last known
	return nil
}

// withheld says what of the spec the servers don't get: what keeps them from being made first,
// and what they do without last.
func (s *scope) withheld() verdict.Verdict {
	switch {
	case s.Keys.Held.State == verdict.Blocked || s.audit.Held.Complete() && !s.Keys.Held.Complete():
		return s.Keys.Held
	case !s.audit.Held.Complete():
		return s.audit.Held
	}
	return s.visibility.held
}

// reveal decrypts what etcd holds, nil where nothing is encrypted.
func (s *scope) reveal() migration.Reveal {
	if s.Keys.Render() == nil {
		return nil
	}
	return func(ctx context.Context, key string, content []byte) ([]byte, error) {
		reader, err := s.Keys.InUse.Reader()
		if err != nil {
			return nil, err
		}
		return reader.Read(ctx, key, content)
	}
}

// keysOperation is the change of the keys to encrypt with.
func (r *Reconciler) keysOperation(s *scope) operation.Operation {
	return operation.Operation{
		Types:  []operatorv1alpha1.OperationType{operatorv1alpha1.OperationEncryption},
		Writes: true,
		Begin: func(ctx context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			handler, err := r.keyChange(ctx, s)
			switch {
			case err != nil:
				return nil, verdict.Failed(err)
			case !handler.Due() || s.ReadOnly() || handler.Busy != "":
				return nil, done
			}
			r.keyWalks.Delete(s.Registry.UID)
			handler.Operation = handler.Begin()
			return handler.Operation, handler.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(ctx context.Context) (operation.Handler, verdict.Verdict) {
			handler, err := r.keyChange(ctx, s)
			switch {
			case err != nil:
				return nil, verdict.Failed(err)
			case s.Keys.InUse == nil || s.Identity.Record == nil:
				return nil, handler.Waiting("it is not known which keys the servers have: %s", s.Keys.Held.Message).In(verdict.Resync)
			}
			return handler, done
		},
		Ended: func(operation.Progress) {
			if keys := s.Keys.InUse; s.Keys.Desired != nil && len(s.keyState().Former()) == 0 && s.Identity.Record.StoredUnder == keys[0].ID() { // else it ended for want of what is desired
				s.Event(corev1.EventTypeNormal, "KeysChanged", operatorv1alpha1.ConditionServerReady, "clusters are stored under %s, and the servers have no other key than %s", keys[0].ID(), strings.Join(keys.IDs(), ", "))
			}
			r.keyWalks.Delete(s.Registry.UID)
		},
	}
}

// noteKeys says what a change of keys that is due waits for, or why there can't be one.
func (s *scope) noteKeys() {
	if under := s.Registry.Status.Operation; under != nil && under.Type == operatorv1alpha1.OperationEncryption || s.Identity.Record == nil {
		return
	}
	h := keychange.Handler{State: s.keyState(), Verified: cmp.Or(s.Identity.Record.StoredUnder, encryption.Identity.ID())}
	message := "the keys to encrypt with are changed when " + operation.Awaits(s.Pass)
	if conflict := h.State.Check(); conflict != nil {
		message = conflict.Error()
	} else if h.State.InUse == nil || !h.Due() {
		return
	}
	s.note(pass.Note{Condition: operatorv1alpha1.ConditionServerReady, Reason: operatorv1alpha1.ReasonEncryptionPending, Message: message})
}

// keyState is what is known of the keys before it is known what the servers have loaded.
func (s *scope) keyState() encryption.State {
	out := encryption.State{InUse: s.Keys.InUse, Desired: s.Keys.Desired}
	if s.Identity.Record == nil || s.Identity.Record.Lineage == "" {
		return out // there are no backups
	}
	if s.backups.Unread {
		out.Needed = s.Keys.InUse.IDs() // one of them may need any
		return out
	}
	out.Needed = backup.Keys(s.backups.All, s.Identity.Record.Lineage)
	return out
}

// keyChange returns the change of keys that is under way, or could begin.
func (r *Reconciler) keyChange(ctx context.Context, s *scope) (keychange.Handler, error) {
	h := keychange.Handler{Operation: s.Registry.Status.Operation, Now: s.Now, Busy: s.Unsteady(), State: s.keyState()}
	if h.State.InUse == nil || s.Identity.Record == nil {
		h.State = encryption.State{InUse: encryption.Keys{encryption.Identity}}
		return h, nil // nothing is known to be desired
	}
	h.Verified = cmp.Or(s.Identity.Record.StoredUnder, encryption.Identity.ID())
	h.Verify = func(ctx context.Context) error {
		record := *s.Identity.Record
		record.StoredUnder = s.Keys.InUse[0].ID()
		return s.Identity.Write(ctx, &record)
	}
	h.Record = func(ctx context.Context, keys encryption.Keys) error { return r.recordKeys(ctx, s, keys) }
	h.Rewrite = func(ctx context.Context) (map[string]int, string, error) { return r.rewrite(ctx, s) }
	h.Readable = func(ctx context.Context) (string, error) { return r.readable(ctx, s) }
	if h.Operation == nil {
		return h, nil
	}
	var err error
	if h.Missing, err = s.withoutKeys(ctx); h.Missing != "" || err != nil {
		r.keyWalks.Delete(s.Registry.UID) // what was found before, such servers may have written again
	}
	return h, err
}

// withoutKeys says which servers don't have the keys in use, those that are terminating among
// them, since these still write; nothing when all have. Not from the cache, which has no
// annotations of pods.
func (s *scope) withoutKeys(ctx context.Context) (string, error) {
	if s.Servers.Rolling != "" {
		return s.Servers.Rolling, nil
	}
	if v, reached := s.verdicts[operatorv1alpha1.ConditionServerReady]; !reached || !v.Complete() {
		return operatorv1alpha1.ConditionServerReady + ": " + v.Message, nil
	}
	digest := ""
	if rendered := s.Keys.Render(); rendered != nil {
		digest = rendered.Digest
	}
	pods := &corev1.PodList{}
	err := s.Live.List(ctx, pods, client.InNamespace(s.Registry.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: s.Registry.Name, operatorv1alpha1.LabelComponent: operand.ComponentServer})
	if err != nil {
		return "", err
	}
	running := operand.Running(pods.Items)
	for i := range running {
		if running[i].Annotations[operatorv1alpha1.AnnotationEncryption] != digest {
			return fmt.Sprintf("pod %s still has the keys of before", running[i].Name), nil
		}
	}
	if len(running) == 0 {
		return "there are no servers", nil
	}
	return "", nil
}

// recordKeys has servers given other keys from the next reconcile on. The Secret with these is
// made first: a record without it would leave servers without any.
func (r *Reconciler) recordKeys(ctx context.Context, s *scope, keys encryption.Keys) error {
	// What was found with the keys of before is of no use with others, nor when they return.
	r.keyWalks.Delete(s.Registry.UID)
	in := s.input(r.Environment)
	if in.Encryption = keyring.Rendered(keys); in.Encryption != nil {
		rendered, err := render.Render(in)
		if err != nil {
			return err
		}
		for _, object := range rendered.Stages[render.StageServer] {
			if object.GetKind() == "Secret" && object.GetName() == s.Name(contract.EncryptionSuffix)+"-"+in.Encryption.Digest {
				if err := s.Apply(ctx, object); err != nil {
					return err
				}
			}
		}
	}
	return s.Identity.Write(ctx, keyring.Record(*s.Identity.Record, keys))
}

// rewrite has clusters stored again under the key that writes.
func (r *Reconciler) rewrite(ctx context.Context, s *scope) (map[string]int, string, error) {
	registry, err := r.access(s).RegistryClient(ctx, s.Authorities.Serving.Bundle())
	if err != nil {
		return nil, "0", err
	}
	until := time.Now().Add(rewriteTime)
	walk := r.keyWalk(s.Registry.UID)
	next, stored, progress, err := walk.Continue(ctx, s.Keys.InUse, keychange.Storage{
		Read: func(ctx context.Context, after string, each func(string, []byte) error) (etcd.Stored, error) {
			return s.Members.Access.Stored(ctx, contract.ObjectPrefix(v1beta1.GroupName, "clusters"), after, each)
		},
		Rewrite: func(ctx context.Context, name string) error { return registry.Rewrite(ctx, s.Release.Stores, name) },
		Over:    func() bool { return time.Now().After(until) },
	})
	r.keyWalks.Store(s.Registry.UID, next)
	return stored, progress, err
}

// readable says until when clients can read what was stored under other keys from etcd's history,
// as by a watch that continues: servers without these keys would fail it.
func (r *Reconciler) readable(ctx context.Context, s *scope) (string, error) {
	revision := r.keyWalk(s.Registry.UID).Revision()
	if revision == 0 {
		return "Waiting for the stored clusters to be read again", nil
	}
	compacted, err := s.Members.Access.Compacted(ctx, revision)
	if err != nil || compacted {
		return "", err
	}
	return fmt.Sprintf("Waiting for etcd's history before revision %d, which has values under the former keys, to be compacted: the servers do that within about ten minutes", revision), nil
}

// keyWalk returns how far the clusters of a registry were rewritten.
func (r *Reconciler) keyWalk(registry types.UID) keychange.Walk {
	if known, is := r.keyWalks.Load(registry); is {
		return known.(keychange.Walk)
	}
	return keychange.Walk{}
}
