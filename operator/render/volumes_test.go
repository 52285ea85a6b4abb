package render

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestVolumes is about a registry whose volumes are there already: etcd's quota fits
// them, and the claim for snapshots is applied as it is, since it can't be changed.
// New members ask for what the spec says.
func TestVolumes(t *testing.T) {
	in := input(t, merged(t, `{etcd: {replicas: 3, storage: {size: 100Gi, storageClassName: fast}}}`))
	in.Snapshot = "s1"
	const quota, size = "StatefulSet/fleet-etcd" + container + "/args/--quota-backend-bytes", "StatefulSet/fleet-etcd/spec/volumeClaimTemplates/0/spec/resources/requests/storage"
	const class = "StatefulSet/fleet-etcd/spec/volumeClaimTemplates/0/spec/storageClassName"
	const snapshots = "PersistentVolumeClaim/fleet-snapshots/spec"
	slow := "slow"
	claim := func(class *string) *corev1.PersistentVolumeClaimSpec {
		return &corev1.PersistentVolumeClaimSpec{StorageClassName: class, VolumeName: "pv-1", Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}}}
	}
	for _, test := range []struct {
		reason  string
		volumes Volumes
		want    map[string]any
	}{
		{"there are none", Volumes{}, map[string]any{quota: "8589934592", size: "100Gi", snapshots + "/resources/requests/storage": "40Gi", snapshots + "/storageClassName": "fast"}},
		{"they are smaller", Volumes{Member: resource.MustParse("8Gi")}, map[string]any{quota: "4294967296", size: "100Gi", snapshots + "/resources/requests/storage": "20Gi"}},
		{"they are larger", Volumes{Member: resource.MustParse("1Ti")}, map[string]any{quota: "8589934592", size: "100Gi"}},
		{"they are smaller than what etcd runs with", Volumes{Member: resource.MustParse("4Gi"), Quota: 6 << 30}, map[string]any{quota: "6442450944", snapshots + "/resources/requests/storage": "30Gi"}},
		{"they hold more than what etcd runs with", Volumes{Member: resource.MustParse("8Gi"), Quota: 2 << 30}, map[string]any{quota: "4294967296", snapshots + "/resources/requests/storage": "20Gi"}},
		{"the StatefulSet is there, whose claim templates can't be changed", Volumes{Member: resource.MustParse("100Gi"), Template: resource.MustParse("8Gi")}, map[string]any{quota: "8589934592", size: "8Gi", class: nil}},
		{"and so is its class", Volumes{Template: resource.MustParse("8Gi"), TemplateClass: slow}, map[string]any{size: "8Gi", class: "slow"}},
		{"the StatefulSet is recreated under members with a larger quota", Volumes{Quota: 60 << 30}, map[string]any{size: "120Gi", class: "fast"}},
		{"snapshots are of another class", Volumes{Snapshots: claim(&slow)}, map[string]any{snapshots + "/resources/requests/storage": "7Gi", snapshots + "/storageClassName": "slow", snapshots + "/volumeName": nil}},
		{"snapshots have no class", Volumes{Snapshots: claim(nil)}, map[string]any{snapshots + "/storageClassName": nil}},
	} {
		in.Volumes = test.volumes
		result := rendered(t, in)
		for path, want := range test.want {
			if got := at(t, result, path); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %v, want %v", test.reason, path, got, want)
			}
		}
	}
}
