package render

import (
	"fmt"
	"maps"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Restore is a backup that etcd is to begin with: it is looked up, and then, once it is known
// which one it is, the first member restores it before it starts.
type Restore struct {
	// Store is where the backup is, and Source its lineage there.
	Store  operatorv1alpha1.BackupStore
	Source string
	// Name is the name of the backup. To look one up, it may be empty: then it is the newest
	// one, or the newest from before the time Before, as RFC 3339 writes it.
	Name, Before string
	// SHA256 is the checksum of the backup, and Lineage the ID of the data that begins with
	// it, as recorded. Both are empty while it is looked up.
	SHA256, Lineage string
	// Task identifies what is looked up, on the Job that does it.
	Task string
}

const (
	restoreName = "<name>" + contract.RestoreSuffix
	// fetchContainer is where the init container is that fetches the backup, behind the one
	// that brings the helper.
	fetchContainer = pod + "/initContainers/1"
)

// restores reports whether a backup is looked up or restored.
func restores(in Input, layout string) bool {
	return in.Restore != nil && in.Registry.Spec.Etcd.External == nil && layout == in.Release.EtcdLayout
}

// restoreComponents are those of a restore.
func restoreComponents(in Input, include func(name string, when bool)) {
	include("restore", in.Restore.Lineage == "")
	include("restore-member", in.Restore.Lineage != "")
	include("restore-egress", in.Restore.Lineage != "" && storeOf(in.Restore.Store).claim == "")
	include("restore-ca", len(storeOf(in.Restore.Store).ca) > 0)
}

// restorePatches returns what is particular to the backup in the components of a restore.
func restorePatches(in Input) map[target][]operation {
	s, account := storeOf(in.Restore.Store), in.Restore.Store.ServiceAccountName
	out := map[target][]operation{}
	if len(s.ca) > 0 {
		out[target{kind: "ConfigMap", name: restoreName}] = []operation{add("/data/"+storeCAKey, string(s.ca))}
	}
	at, arguments := fetchContainer, s.arguments(in.Restore.Source)
	if in.Restore.Lineage == "" {
		at = pod + "/containers/0"
		out[target{kind: "NetworkPolicy", name: restoreName}] = egress(s, account != "", in.Environment.Proxy)
		for name, value := range map[string]string{"name": in.Restore.Name, "before": in.Restore.Before} {
			if value != "" {
				arguments = append(arguments, fmt.Sprintf("--%s=%s", name, value))
			}
		}
	}
	var operations []operation
	for _, argument := range arguments {
		operations = append(operations, add(at+"/args/-", argument))
	}
	for _, volume := range s.volumes(in.Registry.Name + contract.RestoreSuffix) {
		if s.claim != "" {
			volume.mount.ReadOnly = true
		}
		operations = append(operations, add(pod+"/volumes/-", volume.Volume), add(at+"/volumeMounts/-", volume.mount))
	}
	operations = append(operations, proxied(in, s, at)...)
	if account != "" {
		operations = append(operations, add(pod+"/serviceAccountName", account))
	}
	if in.Restore.Lineage != "" {
		if s.claim == "" {
			out[target{kind: "NetworkPolicy", name: restoreName}] = egress(s, account != "", in.Environment.Proxy)
		}
		out[target{kind: "StatefulSet"}] = operations
		return out
	}
	out[target{kind: "Job", name: restoreName}] = operations
	return out
}

// addRestorePatches adds those of a restore to others, of which some are about the same
// objects.
func addRestorePatches(in Input, out map[target][]operation) {
	for target, operations := range restorePatches(in) {
		out[target] = append(out[target], operations...)
	}
}

// restoreValues are what stands for the names in the components of a restore.
func restoreValues(in Input, out map[string]string) {
	r := in.Restore
	if r == nil {
		r = &Restore{}
	}
	maps.Copy(out, map[string]string{"<restore-task>": r.Task, "<restore-name>": r.Name, "<restore-sha256>": r.SHA256, "<restore-lineage>": r.Lineage})
}

// StoreClaim returns the name of the PersistentVolumeClaim that a store is, empty when it is
// none.
func StoreClaim(s operatorv1alpha1.BackupStore) string { return storeOf(s).claim }

// EtcdNeeds returns how large the volume of a member has to be that restores a backup of the
// given size: it has the fetched copy and the restored one, etcd's log, and then a quota of half
// of it.
func EtcdNeeds(bytes int64) int64 { return max(2*bytes+256<<20, 2*bytes+bytes/5) }
