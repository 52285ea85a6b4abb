package restore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/version"
)

// Plan is what a restore would do.
type Plan struct {
	// Namespace and Name are those of the new registry.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Verdict says in a sentence whether the backup can be restored, and Attention that it
	// is not certain.
	Verdict   string `json:"verdict"`
	Attention bool   `json:"attention,omitempty"`
	// Backup is what the operator has reported of the backup, nil when it is known to the
	// store alone.
	Backup *v1alpha1.ClusterRegistryBackupStatus `json:"backup,omitempty"`
	// Lost is what would not be in the new registry.
	Lost []string `json:"lost"`
	// Needed is what has to be there first.
	Needed []string `json:"needed"`
	// Unknown is what can't be known without reaching the store, or reading Secrets.
	Unknown []string `json:"unknown"`
	// Notes are what the manifest does not have of the saved registry.
	Notes []string `json:"notes"`
	// Manifest is the ClusterRegistry that would do it.
	Manifest map[string]any `json:"manifest"`

	now time.Time
}

// plan returns what a restore would do, or why the operator would refuse it.
func (c *choice) plan(releases []version.Release, asked string, now time.Time) (*Plan, error) {
	if c.taken {
		return nil, fmt.Errorf("there is a ClusterRegistry %s, and a registry is restored once, when it is created: name another one with --into", key(c.namespace, c.name))
	}
	out := &Plan{Namespace: c.namespace, Name: c.name, now: now}
	release := asked
	if c.backup != nil {
		out.Backup = &c.backup.Status
		if release == "" {
			release = c.backup.Status.Release
		}
		if err := c.refuse(releases, release); err != nil {
			return nil, err
		}
	}
	if release == "" {
		release = c.registry.Status.Version
	}
	out.judge(c)
	out.Lost, out.Needed, out.Unknown, out.Notes = c.lost(now), c.needed(), c.unknown(), c.notes()
	manifest, err := c.manifest(release)
	if err != nil {
		return nil, err
	}
	out.Manifest = manifest
	return out, nil
}

// refuse returns why the operator would refuse the backup, as far as that is known here: of
// encryption keys, it is the Secret in the namespace of the new registry that counts.
func (c *choice) refuse(releases []version.Release, asked string) error {
	if _, err := version.Find(releases, c.backup.Status.Release); err != nil {
		return fmt.Errorf("the backup was taken from release %q, which this plugin does not know: install the plugin of the operator's release", c.backup.Status.Release)
	}
	release, err := version.Find(releases, asked)
	if err != nil {
		return fmt.Errorf("this plugin does not know release %s: install the plugin of the operator's release, or name another one with --version", asked)
	}
	status := c.backup.Status
	report := contract.BackupReport{Location: status.Location, EncryptionKeys: status.EncryptionKeys, Backup: contract.Backup{
		Name: status.Name, Revision: status.Revision, Bytes: status.Bytes, SHA256: status.SHA256, EtcdVersion: status.EtcdVersion, Release: status.Release,
	}}
	target := restore.Target{Releases: releases, Release: release, Host: c.registry.Status.HostVersion, Keys: status.EncryptionKeys, Storage: c.storage(), SHA256: status.SHA256}
	return target.Refuse(report)
}

// storage returns how large the volumes of the new registry are.
func (c *choice) storage() resource.Quantity {
	if storage := c.registry.Spec.Etcd.Storage; storage != nil && !storage.Size.IsZero() {
		return storage.Size
	}
	return resource.MustParse(v1alpha1.DefaultStorageSize)
}

// judge says whether the backup can be restored.
func (p *Plan) judge(c *choice) {
	p.Verdict = fmt.Sprintf("%s can be restored as ClusterRegistry %s", c.what(), key(c.namespace, c.name))
	b := c.backup
	switch {
	case b == nil && c.from.Name != "":
		p.Attention, p.Verdict = true, c.what()+" has no ClusterRegistryBackup here: the store alone has it, and what it holds is not known"
	case b == nil:
		p.Attention, p.Verdict = true, c.what()+" is not known here: no ClusterRegistryBackup is of one that fits, and the store alone can say which it is"
	case b.Status.VerifiedTime == nil:
		p.Attention = true
		p.Verdict += ", and was never verified: that it is whole shows when it is restored; have it verified first with \"kubectl registry backup verify " + b.Status.Name + "\""
	case len(c.lackingKeys()) > 0:
		p.Attention = true
		p.Verdict += " if its encryption keys are found: the servers of " + key(c.registry.Namespace, c.registry.Name) + " do not have all of them any more"
	case c.unseen != nil:
		p.Attention = true
		p.Verdict += " if there is none of that name"
	}
}

// lost returns what would not be in the new registry.
func (c *choice) lost(now time.Time) []string {
	out := []string{"the CAs: the new registry has its own, and its users need its kubeconfig, unless the Secrets of the CAs are brought there first"}
	if c.backup == nil {
		return append(out, "what was written after the backup was taken; when that was is not known here")
	}
	taken := c.backup.Status.TakenTime
	data := fmt.Sprintf("what was written after %s, %s", stamp(*taken), backup.Ago(taken, now))
	if until := c.unchanged(); until != nil {
		data += fmt.Sprintf("; nothing had changed until %s, when the next backup was due", stamp(*until))
	}
	for i := range c.all {
		if b := &c.all[i]; stored(b) && b.Status.Phase == v1alpha1.BackupCompleted && b.Status.TakenTime.After(taken.Time) && c.newest(b) {
			data += fmt.Sprintf("; backup %s, taken at %s, has more of it", b.Name, stamp(*b.Status.TakenTime))
		}
	}
	return append([]string{data}, out...)
}

// newest reports whether no other complete backup was taken later.
func (c *choice) newest(b *v1alpha1.ClusterRegistryBackup) bool {
	return !slices.ContainsFunc(c.all, func(other v1alpha1.ClusterRegistryBackup) bool {
		return stored(&other) && other.Status.Phase == v1alpha1.BackupCompleted && other.Status.TakenTime.After(b.Status.TakenTime.Time)
	})
}

// unchanged returns until when the registry is known to have held just what the backup does:
// none was taken when a later one was due. Nil when that is not known.
func (c *choice) unchanged() *metav1.Time {
	var until *metav1.Time
	for i := range c.all {
		b := &c.all[i]
		if b.Status.Phase == v1alpha1.BackupSkipped && b.Status.Name == c.backup.Status.Name && (until == nil || until.Before(&b.CreationTimestamp)) {
			until = &b.CreationTimestamp
		}
	}
	return until
}

// lackingKeys returns the names of the encryption keys that the backup needs and the servers of
// the saved registry do not have.
func (c *choice) lackingKeys() []string {
	if c.backup == nil {
		return nil
	}
	var has []string
	if encryption := c.registry.Status.Encryption; encryption != nil {
		has = encryption.Reads
	}
	var out []string
	for _, name := range c.backup.Status.EncryptionKeys {
		if !slices.Contains(has, name) {
			out = append(out, name)
		}
	}
	return out
}

// needed returns what has to be there before the registry is created.
func (c *choice) needed() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if c.namespace != c.registry.Namespace {
		say("namespace %s", c.namespace)
	}
	say("%s", c.credentials())
	if c.backup == nil {
		say("the encryption keys of its time, if clusters in it are encrypted")
		return out
	}
	if keys := c.backup.Status.EncryptionKeys; len(keys) > 0 {
		say("the encryption keys %s, in the Secret that spec.server.encryption names, in namespace %s", strings.Join(keys, " and "), c.namespace)
	}
	if lacking := c.lackingKeys(); len(lacking) > 0 {
		say("a copy of %s, which the servers of %s do not have: look where you keep former keys; without it no server can read those clusters", strings.Join(lacking, " and "), key(c.registry.Namespace, c.registry.Name))
	}
	return out
}

// credentials says with what the store is reached.
func (c *choice) credentials() string {
	store := c.store
	var secret *v1alpha1.LocalObjectReference
	switch {
	case store.PersistentVolumeClaim != nil:
		return fmt.Sprintf("PersistentVolumeClaim %s in namespace %s, with the backups", store.PersistentVolumeClaim.ClaimName, c.namespace)
	case store.ServiceAccountName != "":
		return fmt.Sprintf("ServiceAccount %s in namespace %s, which the platform lets read the store", store.ServiceAccountName, c.namespace)
	case store.S3 != nil:
		secret = store.S3.SecretRef
	case store.GCS != nil:
		secret = store.GCS.SecretRef
	case store.Azure != nil:
		secret = store.Azure.SecretRef
	}
	if secret == nil {
		return "the right to read the store, by the identity of the platform"
	}
	return fmt.Sprintf("Secret %s in namespace %s, with credentials that can read the store", secret.Name, c.namespace)
}

// unknown returns what can't be known from here.
func (c *choice) unknown() []string {
	out := []string{"whether the credentials open the store, and the backup is still there as it was: this command does not reach stores"}
	if c.from.Name == "" && c.from.BackupRef == nil {
		out = append(out, "whether the store has a newer backup that fits: some may have no ClusterRegistryBackup here")
	}
	if c.backup == nil || len(c.backup.Status.EncryptionKeys) > 0 {
		out = append(out, "whether the Secret has the encryption keys: this command does not read Secrets")
	}
	if c.unseen != nil {
		out = append(out, fmt.Sprintf("whether there is a ClusterRegistry %s: %s", key(c.namespace, c.name), c.unseen))
	}
	return append(out, fmt.Sprintf("whether volumes of an earlier registry are in the way: PersistentVolumeClaims data-%s-N, or ConfigMap %s, in namespace %s", c.name+contract.EtcdSuffix, c.name+contract.IdentitySuffix, c.namespace))
}

// manifest returns the ClusterRegistry that would do it: of the size of the saved one, with
// what reading the backup needs.
func (c *choice) manifest(release string) (map[string]any, error) {
	old := c.registry.Spec
	mode := old.Mode
	if mode == v1alpha1.ModeAggregated { // the host cluster has one at most
		mode = v1alpha1.ModeIndependent
	}
	etcd := map[string]any{"replicas": old.Etcd.Replicas}
	if old.Etcd.Storage != nil {
		etcd["storage"] = old.Etcd.Storage
	}
	spec := map[string]any{"version": release, "mode": mode, "etcd": etcd, "restoreFrom": c.from}
	if old.Server.Encryption != nil {
		spec["server"] = map[string]any{"encryption": old.Server.Encryption}
	} else if c.backup != nil && len(c.backup.Status.EncryptionKeys) > 0 {
		spec["server"] = map[string]any{"encryption": v1alpha1.Encryption{SecretRef: v1alpha1.EncryptionSecretSelector{Name: c.name + "-encryption"}}}
	}
	if release == "" {
		return nil, errors.New("which release the backup was taken from is not known: name one with --version")
	}
	return map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ClusterRegistry",
		"metadata": map[string]any{"namespace": c.namespace, "name": c.name}, "spec": spec,
	}, nil
}

// notes says what the manifest does not have of the saved registry.
func (c *choice) notes() []string {
	out := []string{fmt.Sprintf("of the spec of %s, the manifest has the size of etcd and the encryption keys alone: add the rest, and spec.backup, which begins a lineage of its own", key(c.registry.Namespace, c.registry.Name))}
	if c.registry.Spec.Mode == v1alpha1.ModeAggregated {
		out = append(out, "a host cluster has one Aggregated registry at most, so the manifest says Independent: write Aggregated in another host cluster")
	}
	return out
}

// stamp writes a time.
func stamp(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }
