package recovery

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/version"
)

// mostOthers is how many backups are shown beside the newest one that was verified.
const mostOthers = 3

// saved returns the newest backup that was verified, and some others of the same data, the
// newest first.
func (s *scene) saved() []Copy {
	verified := s.registry.Status.Recovery.Backup
	var out []Copy
	if verified != nil {
		out = append(out, s.verified(verified))
	}
	lineage := s.lineage()
	var others []*v1alpha1.ClusterRegistryBackup
	for i := range s.backups {
		b := &s.backups[i]
		status := b.Status
		stored := status.Phase == v1alpha1.BackupCompleted && status.Location != "" && status.TakenTime != nil && b.DeletionTimestamp == nil
		if stored && lineage != "" && status.Lineage == lineage && (verified == nil || b.Name != verified.Name) {
			others = append(others, b)
		}
	}
	slices.SortStableFunc(others, func(a, b *v1alpha1.ClusterRegistryBackup) int {
		return b.Status.TakenTime.Compare(a.Status.TakenTime.Time)
	})
	for _, b := range others[:min(len(others), mostOthers)] {
		c := Copy{Name: b.Name, Revision: b.Status.Revision, TakenTime: b.Status.TakenTime, Location: b.Status.Location}
		s.describe(&c, b)
		out = append(out, c)
	}
	return out
}

// verified returns the copy that is the newest verified backup. What the status has of it is
// known although the backups may not be listed.
func (s *scene) verified(newest *v1alpha1.RecoveryBackup) Copy {
	c := Copy{Name: newest.Name, Revision: newest.Revision, TakenTime: &newest.Time, Location: newest.Location, verified: true}
	b := s.named(newest.Name)
	s.describe(&c, b)
	if b == nil && s.noBackups == nil {
		c.refuse(s.missing(c.Name))
	}
	return c
}

// describe adds what is known of a backup, which is nil where its object is not.
func (s *scene) describe(c *Copy, b *v1alpha1.ClusterRegistryBackup) {
	c.From = v1alpha1.RecoverFromBackup
	c.lacks(s.registry.Status.Recovery.LastRevision)
	if b == nil {
		return
	}
	c.VerifiedTime = b.Status.VerifiedTime
	c.verified = c.verified || c.VerifiedTime != nil
	if !c.verified {
		c.Message = fmt.Sprintf("it was never verified: that it is whole shows when it is restored; have it verified first with \"kubectl registry backup verify %s -n %s\"", b.Name, b.Namespace)
	}
	c.refuse(s.refuseBackup(b, s.approval(c)))
}

// named returns the backup of a name, nil when there is none, or it is not known.
func (s *scene) named(name string) *v1alpha1.ClusterRegistryBackup {
	i := slices.IndexFunc(s.backups, func(b v1alpha1.ClusterRegistryBackup) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &s.backups[i]
}

// missing is what the operator says of a backup that is not there.
func (s *scene) missing(name string) error {
	return fmt.Errorf("there is no ClusterRegistryBackup %s in namespace %s: name one of the backups that \"kubectl registry backup list -n %s\" prints", name, s.registry.Namespace, s.registry.Namespace)
}

// lineage returns the ID of the data that there was, empty when it is not known.
func (s *scene) lineage() string {
	status := &s.registry.Status
	if newest := status.Recovery.Backup; newest != nil {
		if b := s.named(newest.Name); b != nil {
			return b.Status.Lineage
		}
	}
	switch {
	case status.Recovery.Phase == v1alpha1.RecoveryRestoring: // the others have that of the new etcd
		return ""
	case status.Backup != nil && status.Backup.Lineage != "":
		return status.Backup.Lineage
	case status.Recovered != nil:
		return status.Recovered.Lineage
	}
	return ""
}

// refuseBackup returns why the operator would not continue with a backup as approved, as far as
// that can be known without reaching the store.
func (s *scene) refuseBackup(b *v1alpha1.ClusterRegistryBackup, approval restore.Approval) error {
	if lineage := s.lineage(); lineage != "" {
		if err := approval.RefuseBackup(b, lineage); err != nil {
			return err
		}
	}
	source := restore.Source{ClusterRegistryBackup: b, Namespace: s.registry.Namespace, Instead: "recover with "}
	if _, err := source.Refuse(); err != nil {
		return err
	}
	if s.registry.Spec.Backup == nil {
		return fmt.Errorf("%s has no spec.backup, which says where backup %s is stored: set it first", key(s.registry), b.Name)
	}
	if _, err := source.Store(s.registry); err != nil {
		return err
	}
	return s.refuseContent(b)
}

// refuseContent returns why what a backup contains can't be restored here. The release that is
// to read it runs already.
func (s *scene) refuseContent(b *v1alpha1.ClusterRegistryBackup) error {
	status, runs := b.Status, s.registry.Status.Version
	if err := restore.RefuseRelease(b.Name, status.Release, runs); err != nil {
		return fmt.Errorf("%w (kubectl registry restore plan %s -n %s)", err, b.Name, b.Namespace)
	}
	release, err := version.Find(s.releases, runs)
	if err != nil {
		return nil //nolint:nilerr // said to be unknown
	}
	size := resource.MustParse(v1alpha1.DefaultStorageSize)
	if storage := s.registry.Spec.Etcd.Storage; storage != nil && !storage.Size.IsZero() {
		size = storage.Size
	}
	target := restore.Target{Releases: s.releases, Release: release, Host: s.registry.Status.HostVersion, Needs: status.EncryptionKeys, Storage: size, SHA256: status.SHA256}
	if encryption := s.registry.Status.Encryption; encryption != nil {
		target.Keys = encryption.Reads
	}
	return target.Refuse(contract.BackupReport{Location: status.Location, EncryptionKeys: status.EncryptionKeys, Backup: contract.Backup{
		Name: status.Name, Revision: status.Revision, Bytes: status.Bytes, SHA256: status.SHA256, EtcdVersion: status.EtcdVersion, Release: status.Release,
	}})
}

// refused returns why what spec.recovery approves now does nothing, nil when that is not known,
// or it does something. Of what else the operator has found, status.recovery.message tells.
func (s *scene) refused() error {
	asked, lost := s.registry.Spec.Recovery, s.registry.Status.Recovery
	if asked == nil {
		return nil
	}
	approval := restore.Approval{Recovery: *asked, Lost: *lost}
	if err := approval.Refuse(); err != nil {
		return err
	}
	if asked.From == v1alpha1.RecoverFromBackup && s.noBackups == nil {
		b := s.named(asked.Name)
		if b == nil {
			return s.missing(asked.Name)
		}
		if err := s.refuseBackup(b, approval); err != nil {
			return err
		}
	}
	if lost.Message != "" {
		return errors.New(lost.Message)
	}
	return nil
}
