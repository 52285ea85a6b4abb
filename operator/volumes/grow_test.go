package volumes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		{"one was taken over, and no one asks for more", "{size: 8Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "2Gi", "2Gi", "")}, claimOf("fleet-snapshots", "1Gi", "1Gi", ""), "[]", false, "2Gi"},
		{"the spec names no size", "null", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "2Gi", "2Gi", "")}, nil, "[]", false, "2Gi"},
		{"one was taken over, and a person asks for more", "{size: 9Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "2Gi", "2Gi", "")}, claimOf("fleet-snapshots", "1Gi", "1Gi", ""), "[data-fleet-etcd-0 9Gi fleet-snapshots 5Gi]", false, "2Gi"},
		{"one was created again of the template, after the others grew", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "16Gi", ""), claimOf("data-fleet-etcd-1", "8Gi", "8Gi", "")}, nil, "[data-fleet-etcd-1 16Gi]", false, "8Gi"},
		{"snapshots of a quota that has grown", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "16Gi", "")}, claimOf("fleet-snapshots", "20Gi", "20Gi", ""), "[fleet-snapshots 40Gi]", false, "16Gi"},
		{"the quota has not grown yet", "{size: 16Gi}", []*corev1.PersistentVolumeClaim{claimOf("data-fleet-etcd-0", "16Gi", "8Gi", "")}, claimOf("fleet-snapshots", "20Gi", "20Gi", ""), "[]", true, "8Gi"},
	} {
		found, registry := Volumes{Snapshots: test.snapshots, Template: resource.MustParse("8Gi")}, registryOf(t, "{replicas: 3, storage: "+test.storage+"}")
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

// TestUnmade has nothing grow as long as there is no StatefulSet: what it is to be made with
// is no one's change.
func TestUnmade(t *testing.T) {
	found := Volumes{Members: []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", "2Gi", "2Gi", "")}}
	if got := found.Growths(registryOf(t, "{replicas: 1, storage: {size: 8Gi}}")); got != nil {
		t.Errorf("%v grow", got)
	}
}

// TestUnasked has a text about claims that stay small say what has them grow, also where
// the operator's default is larger than the one that the registry was made with.
func TestUnasked(t *testing.T) {
	const advice = "; to have the claims grow, set spec.etcd.storage.size to more than %s, with which StatefulSet fleet-etcd was made"
	for _, test := range []struct{ reason, storage, has, template, want string }{
		{"the quota is limited", "{size: 8Gi}", "4Gi", "8Gi", "is 2048 MiB of data" + fmt.Sprintf(advice, "8Gi")},
		{"it is not", "{size: 20Gi}", "18Gi", "20Gi", "nothing has to be done" + fmt.Sprintf(advice, "20Gi")},
		{"another default", "null", "4Gi", "4Gi", "is 2048 MiB of data" + fmt.Sprintf(advice, "4Gi")},
		{"a person asks for more", "{size: 16Gi}", "4Gi", "8Gi", "it is raised when all volumes have grown"},
	} {
		found := Volumes{Members: []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", test.has, test.has, "")}, Template: resource.MustParse(test.template)}
		registry := registryOf(t, "{replicas: 1, storage: "+test.storage+"}")
		if got := found.Differ(registry); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: it says %q", test.reason, got)
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
