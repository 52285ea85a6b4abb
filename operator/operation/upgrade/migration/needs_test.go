package migration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	hub "github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestNeeds decides which clusters the end of an upgrade writes anew, and why.
func TestNeeds(t *testing.T) {
	const (
		renewed = `{"v1alpha1":{"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://east"},{"clientCIDR":"::/0","serverAddress":"https://east"}]}}}}`
		partly  = `{"v1alpha1":{"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"","serverAddress":"https://east"}]}}}}`
	)
	beta := func(name, remainder string) runtime.Object {
		c := &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: name, URL: "https://east"}}}}
		c.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
		if remainder != "" {
			c.Annotations = map[string]string{hub.RemainderAnnotation: remainder}
		}
		return c
	}
	alpha := &v1alpha1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Cluster"}}
	for _, test := range []struct {
		reason string
		stored runtime.Object
		renew  bool
		want   need
		fails  bool
	}{
		{"another version", alpha, false, needVersion, false},
		{"another version, and the release renews", alpha, true, needVersion, false},
		{"the version, and the release renews nothing", beta("main", ""), false, needNothing, false},
		{"what v0.3.0 stored", beta("main", ""), true, needRenewal, false},
		{"what v0.3.0 changed of what the release stored", beta("main", partly), true, needRenewal, false},
		{"what the release stores", beta("main", renewed), true, needNothing, false},
		{"what was written through v1alpha1", beta("endpoint-1", ""), true, needNothing, false},
		{"a remainder that is none", beta("main", "x"), true, needNothing, true},
	} {
		content, err := runtime.Encode(protobuf.NewSerializer(nil, nil), test.stored)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := needs("v1beta1", test.renew)(content); got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: needs %q, %v", test.reason, got, err)
		}
	}
	if _, err := needs("v1beta1", true)([]byte("nonsense")); err == nil {
		t.Error("nonsense is a cluster")
	}
}
