package volumes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGrowths is about claims that are to request more than they do.
func TestGrowths(t *testing.T) {
	deleted := claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "")
	deleted.DeletionTimestamp = &metav1.Time{}
	for _, test := range []struct {
		reason, storage string
		members         []*corev1.PersistentVolumeClaim
		snapshots       *corev1.PersistentVolumeClaim
		want            string
		growing         bool
		smallest        string // nothing when empty
	}{
		{"there are none", "{size: 16Gi}", nil, nil, "[]", false, ""},
		{"all are as asked for", "{size: 8Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "")}, claimOf("fleet-snapshots", "20Gi", "20Gi", ""), "[]", false, "8Gi"},
		{"the spec asks for more", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", ""), claimOf("data-fleet-etcd-1", "9Gi", "9Gi", "")}, nil, "[data-fleet-etcd-0 16Gi data-fleet-etcd-1 16Gi]", false, "8Gi"},
		{"one has its request already", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "8Gi", ""), claimOf("data-fleet-etcd-1", "9Gi", "9Gi", "")}, nil, "[data-fleet-etcd-1 16Gi]", false, "8Gi"},
		{"all have", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "8Gi", ""), claimOf("data-fleet-etcd-1", "20Gi", "20Gi", "")}, nil, "[]", true, "8Gi"},
		{"the spec asks for less, and nothing shrinks", "{size: 4Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "")}, nil, "[]", false, "8Gi"},
		{"one without a volume can't be changed", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "8Gi", "", "")}, nil, "[]", false, ""},
		{"one goes", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{deleted}, nil, "[]", false, "8Gi"},
		{"snapshots of a quota that has grown", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "16Gi", "")}, claimOf("fleet-snapshots", "20Gi", "20Gi", ""), "[fleet-snapshots 40Gi]", false, "16Gi"},
		{"the quota has not grown yet", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "8Gi", "")}, claimOf("fleet-snapshots", "20Gi", "20Gi", ""), "[]", true, "8Gi"},
	} {
		found, registry := Volumes{Snapshots: test.snapshots}, registryOf(t, "{replicas: 3, storage: "+test.storage+"}")
		for _, claim := range test.members {
			found.Members = append(found.Members, *claim)
		}
		got := []string{}
		for _, growth := range found.Growths(registry) {
			got = append(got, growth.Claim.Name, growth.Size.String())
			if growth.IsMember != strings.HasPrefix(growth.Claim.Name, "data-") {
				t.Errorf("%s: %+v", test.reason, growth)
			}
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v grow, want %s", test.reason, got, test.want)
		}
		if got := found.Growing(registry); got != test.growing {
			t.Errorf("%s: growing %t", test.reason, got)
		}
		if got := found.Smallest(); (got == nil) != (test.smallest == "") || got != nil && got.String() != test.smallest {
			t.Errorf("%s: the smallest is %v, want %s", test.reason, got, test.smallest)
		}
	}
}

// TestHeld has each text about a claim that can't grow say why.
func TestHeld(t *testing.T) {
	for _, test := range []struct{ reason, storage, has, want string }{
		{"the quota is limited", "{size: 8Gi}", "4Gi", "is 2048 MiB of data; the class is against it"},
		{"it is not", "{size: 20Gi}", "18Gi", "nothing has to be done; the class is against it"},
	} {
		found := Volumes{Members: []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", test.has, test.has, "")}}
		found.Hold("data-fleet-etcd-0", "the class is against it")
		if got := found.Differ(registryOf(t, "{replicas: 1, storage: "+test.storage+"}")); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: it says %q", test.reason, got)
		}
	}
}
