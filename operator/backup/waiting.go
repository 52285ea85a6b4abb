package backup

import (
	"fmt"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// MostAsked is how many that people asked for may wait: those that the operator makes, and the
// newest good ones, have the rest of the objects.
const MostAsked = Most - 10

// waits reports whether a backup was not begun yet, and is not deleted before it was.
func waits(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return (b.Status.Phase == "" || b.Status.Phase == operatorv1alpha1.BackupPending) && b.DeletionTimestamp == nil
}

// nextWaiting returns which of the backups that wait is taken next, of all from the oldest to the
// newest; nil when none waits. One for which an operation or a deletion waits comes first. Of
// what people asked for there may be any number, so that one by the schedule and one of these
// take turns: neither waits for more than one of the other.
func nextWaiting(sorted []*operatorv1alpha1.ClusterRegistryBackup) *operatorv1alpha1.ClusterRegistryBackup {
	var needed, scheduled, asked, last *operatorv1alpha1.ClusterRegistryBackup
	for _, b := range sorted {
		first := &asked
		switch {
		case Scheduled(b):
			first = &scheduled
		case Made(b):
			first = &needed
		}
		if *first == nil && waits(b) {
			*first = b
		}
		if ended := b.Status.CompletionTime; ended != nil && !neverBegun(b) && (last == nil || last.Status.CompletionTime.Before(ended)) {
			last = b
		}
	}
	switch {
	case needed != nil:
		return needed
	case scheduled == nil, asked != nil && last != nil && Scheduled(last):
		return asked
	}
	return scheduled
}

// TooMany returns, of all backups of a registry, those beyond MostAsked that wait, the newest ones:
// they are not taken. What the operator has made is not among them.
func TooMany(all []*operatorv1alpha1.ClusterRegistryBackup) []*operatorv1alpha1.ClusterRegistryBackup {
	var asked []*operatorv1alpha1.ClusterRegistryBackup
	for _, b := range oldestFirst(all) {
		if waits(b) && !Made(b) {
			asked = append(asked, b)
		}
	}
	return asked[min(len(asked), MostAsked):]
}

// TooManyMessage is why these are not taken.
func TooManyMessage() string {
	return fmt.Sprintf("%d backups of this registry wait already, and no more are taken: delete some, or wait until they are done, and create another one then", MostAsked)
}

// neverBegun reports whether a backup that a person asked for has failed before it was begun. It
// says nothing about the store, and so nothing about the backups of the registry.
func neverBegun(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return b.Status.Phase == operatorv1alpha1.BackupFailed && b.Status.Lineage == "" && !Made(b)
}
