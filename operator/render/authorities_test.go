package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
)

// TestGenerations renders, in every layout, the CAs of all generations in use, each with a
// Secret, an Issuer and a common name of its own, and has certificates issued by the one that
// signs.
func TestGenerations(t *testing.T) {
	for _, test := range []struct {
		reason string
		inUse  generation.InUse
		cas    []string
		signs  string
	}{
		{"never rotated", generation.InUse{}, []string{""}, ""},
		{"the first", generation.InUse{Signing: 1}, []string{""}, ""},
		{"the next one is made", generation.InUse{Signing: 1, Also: 2}, []string{"", "-2"}, ""},
		{"it signs", generation.InUse{Signing: 2, Also: 1}, []string{"", "-2"}, "-2"},
		{"the first is dropped", generation.InUse{Signing: 2}, []string{"-2"}, "-2"},
		{"many follow", generation.InUse{Signing: 41, Also: 17}, []string{"-17", "-41"}, "-41"},
	} {
		for _, layout := range allLayouts(t) {
			in := input(t, registry, func(r *operatorv1alpha1.ClusterRegistry) {
				r.Spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}}
			})
			in.Release.Layout, in.Release.EtcdLayout = layout, layout
			in.Authorities = Authorities{Etcd: test.inUse, Serving: test.inUse, Clients: test.inUse}
			got, issuers := map[string]bool{}, map[string]string{}
			for _, object := range rendered(t, in).Objects() {
				switch object.GetKind() {
				case certmanagerv1.IssuerKind:
					if issuer := convert[certmanagerv1.Issuer](t, object); issuer.Spec.CA != nil {
						got["Issuer "+issuer.Name+" of "+issuer.Spec.CA.SecretName] = true
					}
				case certmanagerv1.CertificateKind:
					c := convert[certmanagerv1.Certificate](t, object)
					issuers[c.Name] = c.Spec.IssuerRef.Name
					if c.Spec.IsCA {
						got[fmt.Sprintf("Certificate %s of %s in %s", c.Name, c.Spec.CommonName, c.Spec.SecretName)] = true
					}
				}
			}
			want := map[string]bool{}
			for _, ca := range []string{"fleet-etcd-ca", "fleet-serving-ca", "fleet-client-ca"} {
				for _, n := range test.cas {
					want[fmt.Sprintf("Issuer %[1]s of %[1]s", ca+n)], want[fmt.Sprintf("Certificate %[1]s of %[1]s in %[1]s", ca+n)] = true, true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s, layout %s: there are %v", test.reason, layout, slices.Sorted(maps.Keys(got)))
			}
			for leaf, ca := range map[string]string{"etcd-server": "etcd", "etcd-peer": "etcd", "etcd-client": "etcd", "serving": "serving", "admin": "client", "controller": "client"} {
				if issuer, is := issuers["fleet-"+leaf]; is && issuer != "fleet-"+ca+"-ca"+test.signs || !is {
					t.Errorf("%s, layout %s: fleet-%s is of %q", test.reason, layout, leaf, issuer)
				}
			}
		}
	}
}

// TestGenerationsBesideAnIssuer leaves the issuer alone that the spec names, whatever its name.
func TestGenerationsBesideAnIssuer(t *testing.T) {
	in := input(t, registry, func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.TLS.IssuerRef = &operatorv1alpha1.IssuerReference{Name: "<name>-serving-ca", Kind: "Issuer", Group: "cert-manager.io"}
	})
	in.Authorities.Serving = generation.InUse{Signing: 2, Also: 1}
	result := rendered(t, in)
	if got := at(t, result, "Certificate/fleet-serving/spec/issuerRef/name"); got != "<name>-serving-ca" {
		t.Errorf("the servers' certificate is of %v", got)
	}
	for _, object := range result.Objects() {
		if strings.Contains(object.GetName(), contract.ServingCASuffix) {
			t.Errorf("there is %s %s", object.GetKind(), object.GetName())
		}
	}
}
