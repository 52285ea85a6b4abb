package volumes

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// members are those of the registries of these tests.
var members = []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"}

// registryOf returns a registry with an etcd in YAML.
func registryOf(t *testing.T, etcd string) *operatorv1alpha1.ClusterRegistry {
	t.Helper()
	registry := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
	if err := yaml.UnmarshalStrict([]byte(etcd), &registry.Spec.Etcd); err != nil {
		t.Fatalf("%v: %s", err, etcd)
	}
	operatorv1alpha1.SetDefaults(registry)
	return registry
}

// reading returns a client of a host that has some objects.
func reading(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

// claimOf returns a claim that asks for a size and a class, if one is named, and
// whose volume has another size, if one is named.
func claimOf(name, asks, has, class string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(asks)}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	if has != "" {
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	}
	return claim
}

// claimIn returns a claim with a condition.
func claimIn(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, message string) *corev1.PersistentVolumeClaim {
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind, Status: corev1.ConditionTrue, Message: message}}
	return claim
}

// setOf returns the StatefulSet of an etcd with a quota.
func setOf(quota string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claimOf("data", "3Gi", "", "")}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "etcd", Args: []string{"--name=$(POD_NAME)", "--quota-backend-bytes=" + quota}}}
	return set
}

// TestVolumes is about claims that are there when a registry is created, and those
// that grow or wait for a volume under one that runs.
func TestVolumes(t *testing.T) {
	for _, test := range []struct {
		reason, storage string
		claims          []client.Object
		quota           int64  // in MiB
		says            string // nothing when empty
	}{
		{"there are none", "{size: 100Gi}", nil, 8192, ""},
		{"they are as asked for", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "standard"), claimOf("fleet-snapshots", "20Gi", "", "standard")}, 4096, ""},
		{"they have no volumes yet", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "", "")}, 4096, ""},
		{"volumes are larger, and the spec decides", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "1Gi", "100Gi", ""), claimOf("data-fleet-etcd-1", "100Gi", "", "")}, 4096, ""},
		{"the smallest counts", "{size: 100Gi}", []client.Object{claimOf("data-fleet-etcd-0", "100Gi", "100Gi", ""), claimOf("data-fleet-etcd-1", "4Gi", "4Gi", ""), claimOf("data-fleet-etcd-2", "8Gi", "8Gi", "")}, 2048,
			"PersistentVolumeClaim data-fleet-etcd-1 has 4Gi, PersistentVolumeClaim data-fleet-etcd-2 has 8Gi, and spec.etcd.storage.size is 100Gi: etcd's quota follows the smallest volume and is 2048 MiB"},
		{"one grows", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "4Gi", "")}, 2048, "data-fleet-etcd-0 has 4Gi (8Gi requested), and spec.etcd.storage.size is 8Gi: etcd's quota follows the smallest volume and is 2048 MiB of data; it is raised when all volumes have grown"},
		{"its file system is next", "{size: 8Gi}", []client.Object{claimIn(claimOf("data-fleet-etcd-0", "8Gi", "4Gi", ""), corev1.PersistentVolumeClaimFileSystemResizePending, "")}, 2048, "data-fleet-etcd-0 has 4Gi (8Gi requested, and the kubelet is to resize the file system"},
		{"it fails", "{size: 8Gi}", []client.Object{claimIn(claimOf("data-fleet-etcd-0", "8Gi", "4Gi", ""), corev1.PersistentVolumeClaimControllerResizeError, "out of quota")}, 2048, "(8Gi requested, and the host cluster fails to resize the volume: out of quota)"},
		{"snapshots get room when they are next used", "{size: 8Gi}", []client.Object{claimOf("fleet-snapshots", "20Gi", "1Gi", "")}, 4096, ""},
		{"one has no volume, and never gets one", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", ""), claimOf("data-fleet-etcd-1", "8Gi", "8Gi", ""), claimOf("data-fleet-etcd-2", "1Mi", "", "")}, 4096, ""},
		{"its size is not known", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "0", "")}, 4096, ""},
		{"none has a volume yet", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "", ""), claimOf("data-fleet-etcd-1", "4Gi", "", "")}, 2048, "data-fleet-etcd-1 requests 4Gi"},
		{"another registry's don't count", "{size: 8Gi}", []client.Object{claimOf("data-other-etcd-0", "1Gi", "1Gi", "")}, 4096, ""},
		{"snapshots of a full etcd don't fit", "{size: 8Gi}", []client.Object{claimOf("fleet-snapshots", "1Gi", "1Gi", "")}, 4096, "PersistentVolumeClaim fleet-snapshots has 1Gi, and the snapshots of an etcd that is full take up to 20Gi"},
		{"they fit an etcd that is small itself", "{size: 100Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", ""), claimOf("fleet-snapshots", "20Gi", "20Gi", "")}, 4096, "data-fleet-etcd-0 has 8Gi"},
		{"one is smaller, and the quota is the largest either way", "{size: 20Gi}", []client.Object{claimOf("data-fleet-etcd-0", "18Gi", "18Gi", "")}, 8192, "data-fleet-etcd-0 has 18Gi, and spec.etcd.storage.size is 20Gi: nothing has to be done"},
		{"etcd runs with more than they hold", "{size: 20Gi}", []client.Object{setOf("8589934592"), claimOf("data-fleet-etcd-0", "4Gi", "4Gi", ""), claimOf("data-fleet-etcd-1", "18Gi", "18Gi", "")}, 8192,
			"PersistentVolumeClaim data-fleet-etcd-0 has 4Gi, and etcd's quota is 8192 MiB of data, which is more than half of the volume and is not lowered while etcd exists: the volume may be full before etcd refuses writes; enlarge each of these claims to 16Gi where its StorageClass allows it (spec.resources.requests.storage), or keep etcd's data below 2048 MiB"},
		{"etcd runs with more, and they have grown", "{size: 20Gi}", []client.Object{setOf("8589934592"), claimOf("data-fleet-etcd-0", "20Gi", "20Gi", "")}, 8192, ""},
		{"etcd runs with less, and they have grown", "{size: 20Gi}", []client.Object{setOf("2147483648"), claimOf("data-fleet-etcd-0", "12Gi", "12Gi", "")}, 6144, "data-fleet-etcd-0 has 12Gi, and spec.etcd.storage.size is 20Gi: etcd's quota follows the smallest volume and is 6144 MiB of data"},
		{"etcd runs with more than the spec asks for, and they hold it", "{size: 8Gi}", []client.Object{setOf("8589934592"), claimOf("data-fleet-etcd-0", "8Gi", "100Gi", "")}, 8192, ""},
		{"etcd runs with its default", "{size: 1Gi}", []client.Object{setOf("0"), claimOf("data-fleet-etcd-0", "1Gi", "1Gi", "")}, 2048, "etcd's quota is 2048 MiB of data, which is more"},
		{"etcd can't run with it", "{size: 1Gi}", []client.Object{setOf("much")}, 512, ""},
		{"the quota of a negative size", "{size: 1Gi}", []client.Object{setOf("-1")}, 512, ""},
		{"snapshots of what etcd runs with", "{size: 8Gi}", []client.Object{setOf("8589934592"), claimOf("fleet-snapshots", "20Gi", "20Gi", "")}, 8192, "take up to 40Gi"},
		{"they are of another class", "{size: 8Gi, storageClassName: fast}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "slow"), claimOf("data-fleet-etcd-1", "8Gi", "8Gi", "fast"), claimOf("fleet-snapshots", "20Gi", "20Gi", "slow")}, 4096, ""},
	} {
		registry := registryOf(t, "{replicas: 3, storage: "+test.storage+"}")
		found, err := Read(t.Context(), reading(t, test.claims...), registry, members)
		if err != nil {
			t.Fatal(err)
		}
		if got := found.EtcdQuota(registry) >> 20; got != test.quota {
			t.Errorf("%s: the quota is %d MiB, want %d", test.reason, got, test.quota)
		}
		if got := found.Differ(registry); !strings.Contains(got, test.says) || (got == "") != (test.says == "") {
			t.Errorf("%s: it says %q, want %q", test.reason, got, test.says)
		}
	}
}

// TestRead is about what is read, and about a host that does not answer.
func TestRead(t *testing.T) {
	claims := []client.Object{claimOf("data-fleet-etcd-0", "1Gi", "", ""), claimOf("data-fleet-etcd-2", "1Gi", "", ""), claimOf("data-fleet-etcd-3", "1Gi", "", ""), claimOf("fleet-snapshots", "2Gi", "", ""), setOf("1024")}
	for _, test := range []struct {
		reason, etcd string
		missing      string // what can't be read, nothing when empty
		members      int
		quota        int64
	}{
		{"its own", "{replicas: 3}", "", 2, 1024},
		{"an external etcd has none", "{external: {endpoints: ['https://a:1']}}", "", 0, 0},
		{"a member's claim can't be read", "{replicas: 3}", "data-fleet-etcd-1", 0, 0},
		{"the StatefulSet can't be read", "{replicas: 3}", "fleet-etcd", 0, 0},
		{"the claim for snapshots can't be read", "{replicas: 3}", "fleet-snapshots", 2, 1024},
	} {
		reader := interceptor.NewClient(reading(t, claims...), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == test.missing {
				return errors.New("forbidden")
			}
			return c.Get(ctx, key, object, options...)
		}})
		found, err := Read(t.Context(), reader, registryOf(t, test.etcd), members)
		if (err != nil) != (test.missing != "") {
			t.Errorf("%s: %v", test.reason, err)
		}
		if err == nil && (len(found.Members) != test.members || found.Quota != test.quota || found.Template.String() != map[bool]string{true: "3Gi", false: "0"}[test.quota > 0] || (found.Snapshots != nil) != (test.members > 0)) {
			t.Errorf("%s: %+v", test.reason, found)
		}
	}
}

// TestRendered is about what the registry's objects are made from.
func TestRendered(t *testing.T) {
	claim := func(asks, has string) corev1.PersistentVolumeClaim { return *claimOf("data", asks, has, "") }
	for _, test := range []struct {
		reason  string
		volumes Volumes
		member  string // the size that counts
	}{
		{"there are none", Volumes{}, "0"},
		{"the smallest", Volumes{Members: []corev1.PersistentVolumeClaim{claim("8Gi", "8Gi"), claim("8Gi", "4Gi")}, Quota: 7}, "4Gi"},
		{"one without a volume does not count beside one with", Volumes{Members: []corev1.PersistentVolumeClaim{claim("1Gi", ""), claim("8Gi", "8Gi")}}, "8Gi"},
		{"what is requested counts before there is any volume", Volumes{Members: []corev1.PersistentVolumeClaim{claim("1Gi", ""), claim("8Gi", "")}, Snapshots: claimOf("fleet-snapshots", "20Gi", "", "fast")}, "1Gi"},
	} {
		got := test.volumes.Rendered()
		if want := resource.MustParse(test.member); got.Member.Cmp(want) != 0 || got.Quota != test.volumes.Quota {
			t.Errorf("%s: %+v", test.reason, got)
		}
		if (got.Snapshots != nil) != (test.volumes.Snapshots != nil) || got.Snapshots != nil && *got.Snapshots.StorageClassName != "fast" {
			t.Errorf("%s: the claim for snapshots is %+v", test.reason, got.Snapshots)
		}
	}
}

// TestQuotaDiffers tells what limits etcd from a claim that is smaller for nothing.
func TestQuotaDiffers(t *testing.T) {
	for _, test := range []struct {
		reason, storage, has string
		quota                int64
		says                 string // nothing when empty
	}{
		{"as asked for", "{size: 8Gi}", "8Gi", 0, ""},
		{"smaller, and so is the quota", "{size: 8Gi}", "4Gi", 0, "etcd's quota follows the smallest volume and is 2048 MiB of data"},
		{"smaller, and the quota is the largest either way", "{size: 20Gi}", "18Gi", 0, ""},
		{"too small for what etcd runs with", "{size: 8Gi}", "4Gi", 4 << 30, "etcd's quota is 4096 MiB of data, which is more than half of the volume"},
	} {
		found := Volumes{Members: []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", "1Gi", test.has, "")}, Quota: test.quota}
		got := found.QuotaDiffers(registryOf(t, "{replicas: 1, storage: "+test.storage+"}"))
		if !strings.Contains(got, test.says) || (got == "") != (test.says == "") {
			t.Errorf("%s: it says %q, want %q", test.reason, got, test.says)
		}
	}
}
