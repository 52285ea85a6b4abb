package restore

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/restore"
)

// choice is a backup, and what it is to be restored into.
type choice struct {
	from v1alpha1.RestoreFrom
	// backup is what is known of it, nil when it is in the store alone. All are those of its
	// lineage that have a ClusterRegistryBackup.
	backup *v1alpha1.ClusterRegistryBackup
	all    []v1alpha1.ClusterRegistryBackup
	// store is where it is.
	store v1alpha1.BackupStore
	// registry is the one that was saved.
	registry *v1alpha1.ClusterRegistry
	// namespace and name are those of the new one. Taken is true when there is one, and
	// unseen why that is not known.
	namespace, name string
	taken           bool
	unseen          error
}

// choose finds out which backup is meant.
func (p *planner) choose(ctx context.Context, object string, before *metav1.Time) (*choice, error) {
	c, err := p.byObject(ctx, object)
	if object == "" {
		c, err = p.byRegistry(ctx, before)
	}
	if err != nil {
		return nil, err
	}
	host, err := p.env.Host()
	if err != nil {
		return nil, err
	}
	registries, _, err := hostcluster.List(ctx, host, c.namespace)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, p.env.Explain("list the ClusterRegistries", command.OfHost, err)
	}
	c.unseen = err
	for i := range registries {
		c.taken = c.taken || registries[i].Name == c.name
	}
	return c, nil
}

// instead begins what a plan says of a backup that has to be named in another way.
const instead = "plan with "

// byObject takes a ClusterRegistryBackup.
func (p *planner) byObject(ctx context.Context, name string) (*choice, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // another one is named
	}
	b, err := backup.Find(ctx, p.env, name)
	if err != nil {
		return nil, err
	}
	registry, err := backup.RegistryOf(ctx, p.env, b)
	if err != nil {
		return nil, err
	}
	c := &choice{backup: b, registry: registry}
	c.namespace, c.name = p.target(b.Namespace, b.Spec.RegistryRef.Name)
	source := restore.Source{ClusterRegistryBackup: b, Namespace: c.namespace, Instead: instead}
	if _, err := source.Refuse(); err != nil {
		return nil, command.Refusedf("nothing can be restored from it: %w", err)
	}
	if c.store, err = source.Store(registry); err != nil {
		return nil, command.Refusedf("nothing can be restored from it: %w", err)
	}
	if c.all, err = p.lineage(ctx, b.Namespace, b.Status.Lineage); err != nil {
		return nil, err
	}
	if p.byStore {
		c.from = v1alpha1.RestoreFrom{Store: &c.store, Lineage: b.Status.Lineage, Name: b.Status.Name}
		return c, nil
	}
	c.from.BackupRef = &v1alpha1.BackupReference{Name: b.Name}
	if b.Namespace != c.namespace {
		c.from.BackupRef.Namespace = b.Namespace
	}
	return c, nil
}

// byRegistry takes a backup in the store of a registry.
func (p *planner) byRegistry(ctx context.Context, before *metav1.Time) (*choice, error) {
	registry, err := hostcluster.Find(ctx, p.env, p.registry)
	if err != nil {
		return nil, err
	}
	c := &choice{registry: registry}
	c.namespace, c.name = p.target(registry.Namespace, registry.Name)
	switch {
	case registry.Spec.Backup == nil:
		return nil, command.Refusedf("%s has no spec.backup, which names the store: plan with a ClusterRegistryBackup", key(registry.Namespace, registry.Name))
	case registry.Status.Backup == nil || registry.Status.Backup.Lineage == "":
		return nil, command.Refusedf("no backup of %s has been taken: take one with \"kubectl registry backup create %s\"", key(registry.Namespace, registry.Name), registry.Name)
	}
	c.store = registry.Spec.Backup.Store
	if claim := c.store.PersistentVolumeClaim; claim != nil && c.namespace != registry.Namespace {
		return nil, command.Refusedf("the backups of %s are in PersistentVolumeClaim %s, which pods of its own namespace alone can mount: have --into name a registry in namespace %s", key(registry.Namespace, registry.Name), claim.ClaimName, registry.Namespace)
	}
	c.from = v1alpha1.RestoreFrom{Store: &c.store, Lineage: registry.Status.Backup.Lineage, Name: p.name, Before: before}
	if p.latest {
		c.from.Latest = &p.latest
	}
	if c.all, err = p.lineage(ctx, registry.Namespace, c.from.Lineage); err != nil {
		return nil, err
	}
	for i := range c.all {
		if b := &c.all[i]; c.means(b) && (c.backup == nil || c.backup.Status.TakenTime.Before(b.Status.TakenTime)) {
			c.backup = b
		}
	}
	if p.name != "" && c.backup != nil && c.backup.Status.Phase == v1alpha1.BackupDamaged {
		return nil, command.Refusedf("nothing can be restored from it: backup %s is damaged (%s): %sanother backup", command.Plain(p.name), command.Plain(c.backup.Status.Message), instead)
	}
	return c, nil
}

// means reports whether a ClusterRegistryBackup is of a backup that spec.restoreFrom can mean,
// which names a store.
func (c *choice) means(b *v1alpha1.ClusterRegistryBackup) bool {
	status := b.Status
	if !stored(b) {
		return false
	}
	if c.from.Name != "" {
		return status.Name == c.from.Name
	}
	return status.Phase != v1alpha1.BackupDamaged && (c.from.Before == nil || !status.TakenTime.After(c.from.Before.Time))
}

// stored reports whether a ClusterRegistryBackup has content of its own in the store.
func stored(b *v1alpha1.ClusterRegistryBackup) bool {
	status := b.Status
	return status.Phase.Ended() && status.Location != "" && status.Name == b.Name && status.TakenTime != nil && b.DeletionTimestamp == nil
}

// lineage returns the ClusterRegistryBackups of a lineage.
func (p *planner) lineage(ctx context.Context, namespace, lineage string) ([]v1alpha1.ClusterRegistryBackup, error) {
	host, err := p.env.Host()
	if err != nil {
		return nil, err
	}
	all, err := backup.List(ctx, host, namespace)
	if err != nil {
		return nil, p.env.Explain("list the ClusterRegistryBackups", command.OfHost, err)
	}
	out := all[:0]
	for _, b := range all {
		if b.Status.Lineage == lineage {
			out = append(out, b)
		}
	}
	return out, nil
}

// what names the backup that is meant.
func (c *choice) what() string {
	from := c.from
	switch {
	case from.BackupRef != nil:
		return "backup " + key(c.backup.Namespace, c.backup.Name)
	case from.Name != "":
		return fmt.Sprintf("backup %s of lineage %s", from.Name, from.Lineage)
	case from.Before != nil:
		return fmt.Sprintf("the newest backup of lineage %s from before %s", from.Lineage, stamp(*from.Before))
	}
	return "the newest backup of lineage " + from.Lineage
}
