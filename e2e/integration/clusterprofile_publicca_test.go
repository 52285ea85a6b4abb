package integration

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestClusterProfilesPublicCA publishes an entry without a CA bundle, whose server shows a
// certificate of a CA that the controller's system trusts, and undoes the CA that someone else
// gives its profile.
func TestClusterProfilesPublicCA(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.install()
	cas := filepath.Join(t.TempDir(), "cas.pem")
	h.must(os.WriteFile(cas, h.ca, 0o600))
	framework.StartControllerTrusting(t, cas, append(h.flags, h.exports(`{namespace: default, format: ClusterProfile, providers: [secretreader]}`))...)
	h.enter("east", "gold", func(c *v1beta1.Cluster) {
		c.Spec.Endpoints[0].CABundle, c.Spec.ID = nil, "7a0f"
	})
	clean := func(p *v1alpha1.ClusterProfile) bool {
		return whole(p) && p.Status.AccessProviders[0].Cluster.Server == h.at+"/east" && len(p.Status.AccessProviders[0].Cluster.CertificateAuthorityData) == 0
	}
	p := h.await("default", "east", "published without a CA", clean)
	if len(p.Status.Properties) != 1 || p.Status.Properties[0].Name != "cluster.clusterset.k8s.io" || p.Status.Properties[0].Value != "7a0f" {
		t.Errorf("%+v", p.Status.Properties)
	}
	foreign := framework.NewAuthority(t, "foreign-ca").PEM
	p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = foreign
	h.must(h.Status().Update(t.Context(), p))
	h.await("default", "east", "repaired", clean)

	// The next generation has a CA of its own, and the one after it has none again.
	h.change("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].CABundle = h.ca })
	h.await("default", "east", "with its CA", func(p *v1alpha1.ClusterProfile) bool {
		return whole(p) && string(p.Status.AccessProviders[0].Cluster.CertificateAuthorityData) == string(h.ca)
	})
	h.change("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].CABundle = nil })
	h.await("default", "east", "without it", clean)
}
