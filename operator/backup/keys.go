package backup

import (
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// inClear is the name of what is stored without a key.
const inClear = "identity"

// Encrypted notes the names of the keys that servers have while a backup is taken: what it holds
// is under one of these, or in clear. None that was noted before is forgotten.
func Encrypted(b *operatorv1alpha1.ClusterRegistryBackup, inUse []string) {
	for _, id := range inUse {
		if id != inClear && !slices.Contains(b.Status.EncryptionKeys, id) {
			b.Status.EncryptionKeys = append(b.Status.EncryptionKeys, id)
		}
	}
}

// Keys are the names of the keys without which backups of a lineage can't be restored, as far
// as they have objects: of those that are in the store, and of one that is being taken. One that
// is damaged needs none.
func Keys(all []*operatorv1alpha1.ClusterRegistryBackup, lineage string) []string {
	var out []string
	for _, b := range all {
		phase := b.Status.Phase
		if b.Status.Lineage == lineage && phase != operatorv1alpha1.BackupDamaged && (b.Status.Location != "" || phase == operatorv1alpha1.BackupSaving) {
			out = append(out, b.Status.EncryptionKeys...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
