package clusterprofile

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/labelkeys"
)

var (
	source = Format{format.Source{Registry: "hub", Namespace: "registries"}}
	target = format.Target{Namespace: "a", Labels: allowed("tier", "example.com/*"), Providers: []string{"secretreader", "tokens", "kubeconfig-secretreader", "gke", "sso", "kubefed", "b", "c", "d", "e", "f", "g", "h", "i", "other"}}
	// verified is that a server has shown the right certificate.
	verified = proof{Known: format.Known{Verified: true}}
)

// member returns a cluster that has all that a profile shows.
func member(name string, change ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Labels: map[string]string{"tier": "gold", "secret": "x"}},
		Spec: v1beta1.ClusterSpec{
			Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com:6443", CABundle: []byte("CA")}},
			Access:    []v1beta1.Access{{Name: "tokens", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: "secretreader", Config: map[string]string{"clusterName": name}}}},
		},
		Status: &v1beta1.ClusterStatus{
			Version:    v1beta1.ClusterVersion{Kubernetes: "v1.37.1"},
			Conditions: []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC)}},
			Properties: []v1beta1.Property{{Name: "region", Value: "eu"}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// allowed returns labels that are copied.
func allowed(keys ...string) labelkeys.AllowList {
	out, err := labelkeys.Parse(keys)
	if err != nil {
		panic(err)
	}
	return out
}
