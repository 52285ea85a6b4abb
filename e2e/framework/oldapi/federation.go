package oldapi

import (
	"errors"
	"fmt"
	"net"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// CheckFederation has a control plane of 2018 read the clusters that a person writes through
// v1beta1, reach them, write them, and delete what it has written itself. It speaks one
// form, JSON or Protobuf. The person has the rights of an administrator.
func CheckFederation(t *testing.T, person, controlPlane *rest.Config, media string) {
	t.Helper()
	old, err := NewClient(controlPlane, media)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := versioned.NewForConfig(person)
	if err != nil {
		t.Fatal(err)
	}
	clusters, plane := clients.ClusterregistryV1beta1().Clusters(), Follow(t, old)
	readsAndReaches(t, clusters, old, plane)
	writes(t, clusters, old, plane)
	owns(t, clusters, old, plane)
}

// readsAndReaches writes a cluster with three addresses through v1beta1. The control plane
// reaches the one that is meant for its own address, also after it has replaced the cluster
// with what it has read, which changes nothing.
func readsAndReaches(t *testing.T, clusters typed.ClusterInterface, old *Client, plane *ControlPlane) {
	t.Helper()
	inside, outside, near := StartMember(t, "inside"), StartMember(t, "outside"), StartMember(t, "near")
	made, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{
		// The longest range is the last.
		{Name: "outside", URL: outside.URL, CABundle: outside.CA},
		{Name: "inside", URL: inside.URL, CABundle: inside.CA, ClientCIDRs: []string{"10.0.0.0/8", "2001:db8::/32"}},
		{Name: "near", URL: near.URL, CABundle: near.CA, ClientCIDRs: []string{"10.1.0.0/16", "2001:db8:1::/48"}},
	}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var seen *v1alpha1.Cluster
	plane.Await(t, "east", "as it was created", func(c *v1alpha1.Cluster) error { seen = c; return is(c, made.ResourceVersion) })
	for _, round := range []string{"written through v1beta1", "replaced through v1alpha1"} {
		for from, want := range map[string]string{
			"203.0.113.7": "outside", "10.9.0.1": "inside", "10.1.0.1": "near", "2001:db8:9::1": "inside", "2001:db8:1::1": "near", "2001:db9::1": "outside",
		} {
			if got, err := Reach(seen, net.ParseIP(from)); err != nil || got != want {
				t.Errorf("%s, a client at %s reaches %q, %v; want %s", round, from, got, err, want)
			}
		}
		if _, err := old.Update(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
		if seen, err = old.Get(t.Context(), "east"); err != nil {
			t.Fatal(err)
		}
	}
	after, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != made.ResourceVersion || after.Generation != 1 {
		t.Errorf("a replacement without a change has changed it: %v, %+v", err, after)
	}
}

// writes has the control plane add a label and a provider: what v1alpha1 has no field for stays.
func writes(t *testing.T, clusters typed.ClusterInterface, old *Client, plane *ControlPlane) {
	t.Helper()
	before, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := old.Get(t.Context(), "east")
	if err != nil {
		t.Fatal(err)
	}
	cluster.Labels = map[string]string{"federation": "2018"}
	cluster.Spec.AuthInfo.Providers = []v1alpha1.AuthProviderConfig{{Name: "people", Type: v1alpha1.AuthProviderType{Name: "oidc"}}}
	made, err := old.Update(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	plane.Await(t, "east", "as it has written it", func(c *v1alpha1.Cluster) error { return is(c, made.ResourceVersion) })
	after, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || after.Labels["federation"] != "2018" || len(after.Spec.Access) != 1 || !apiequality.Semantic.DeepEqual(after.Spec.Endpoints, before.Spec.Endpoints) {
		t.Errorf("after a write through v1alpha1 it is %+v, %v; want the endpoints of %+v", after, err, before)
	}
	// It has read what is no longer true.
	cluster.Labels["federation"] = "late"
	if _, err := old.Update(t.Context(), cluster); !apierrors.IsConflict(err) {
		t.Errorf("a replacement of a former version: %v", err)
	}
	if err := clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	plane.Await(t, "east", "no longer", gone)
}

// owns has the control plane enter a cluster and delete it.
func owns(t *testing.T, clusters typed.ClusterInterface, old *Client, plane *ControlPlane) {
	t.Helper()
	made, err := old.Create(t.Context(), &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "joined"}, Spec: v1alpha1.ClusterSpec{KubernetesAPIEndpoints: v1alpha1.KubernetesAPIEndpoints{
		ServerEndpoints: []v1alpha1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "joined.example.com:6443"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if address := made.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress; address != "joined.example.com:6443" {
		t.Errorf("it has written joined.example.com:6443, and reads %s", address)
	}
	plane.Await(t, "joined", "as it has entered it", func(c *v1alpha1.Cluster) error { return is(c, made.ResourceVersion) })
	if now, err := clusters.Get(t.Context(), "joined", metav1.GetOptions{}); err != nil || len(now.Spec.Endpoints) != 1 || now.Spec.Endpoints[0].URL != "https://joined.example.com:6443" {
		t.Errorf("through v1beta1 it is %+v, %v", now, err)
	}
	if err := old.Delete(t.Context(), "joined"); err != nil {
		t.Fatal(err)
	}
	plane.Await(t, "joined", "no longer", gone)
	if _, err := old.Get(t.Context(), "joined"); !apierrors.IsNotFound(err) {
		t.Errorf("of a cluster that is deleted, a client of 2018 is told %v", err)
	}
}

// is returns nil for a cluster of the given version.
func is(cluster *v1alpha1.Cluster, version string) error {
	if cluster == nil {
		return errors.New("it knows of none")
	}
	if cluster.ResourceVersion != version {
		return fmt.Errorf("it knows it at %s, not at %s", cluster.ResourceVersion, version)
	}
	return nil
}

// gone returns nil for no cluster.
func gone(cluster *v1alpha1.Cluster) error {
	if cluster != nil {
		return fmt.Errorf("it knows it at %s", cluster.ResourceVersion)
	}
	return nil
}
