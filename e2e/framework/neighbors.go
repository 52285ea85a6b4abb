package framework

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// NeighborAPIs installs the CRDs of Cluster API and of ClusterProfiles for the rest of a test,
// as their modules have them.
func NeighborAPIs(t *testing.T, kubectl *Kubectl) {
	t.Helper()
	clusters, err := yaml.Marshal(ClusterAPICRD(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := kubectl.After().Try(strings.Fields("delete crd --ignore-not-found clusters.cluster.x-k8s.io clusterprofiles.multicluster.x-k8s.io")...); err != nil {
			t.Error(err)
		}
	})
	kubectl.Stdin(string(clusters)).Run("create", "-f", "-")
	kubectl.Run("create", "-f", filepath.Join(ModuleDir(t, "sigs.k8s.io/cluster-inventory-api"), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml"))
	kubectl.Established("crd/clusters.cluster.x-k8s.io", "crd/clusterprofiles.multicluster.x-k8s.io")
}

// KueueAPIs installs, with those, the CRDs by which Kueue's users name worker clusters, as Kueue's
// module has them.
func KueueAPIs(t *testing.T, kubectl *Kubectl) {
	t.Helper()
	NeighborAPIs(t, kubectl)
	dir := filepath.Join(ModuleDir(t, "sigs.k8s.io/kueue"), "config", "components", "crd", "bases")
	for _, name := range []string{"multikueueclusters", "multikueueconfigs"} {
		crd := name + ".kueue.x-k8s.io"
		t.Cleanup(func() {
			if _, err := kubectl.After().Try("delete", "crd", "--ignore-not-found", crd); err != nil {
				t.Error(err)
			}
		})
		kubectl.Run("create", "-f", filepath.Join(dir, "kueue.x-k8s.io_"+name+".yaml"))
		kubectl.Established("crd/" + crd)
	}
}
