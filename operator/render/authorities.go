package render

import (
	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
)

// Authorities are the generations of a registry's CAs that are in use. The zero value has
// the first of each.
type Authorities struct {
	Etcd, Serving, Clients generation.InUse
}

// byName returns the generations of each CA by the name that the first has in the manifests,
// which is that of its Certificate, its Issuer and its Secret.
func (a Authorities) byName() map[string]generation.InUse {
	return map[string]generation.InUse{"<name>" + contract.EtcdCASuffix: a.Etcd, "<name>" + contract.ServingCASuffix: a.Serving, "<name>" + contract.ClientCASuffix: a.Clients}
}

// inGenerations returns objects with the CAs of all generations in use in place of the first
// ones, which are those that the manifests have, and with certificates from the ones that
// sign. Where only the first are in use, it returns the objects as they are.
func inGenerations(objects []*unstructured.Unstructured, authorities Authorities) []*unstructured.Unstructured {
	inUse := authorities.byName()
	var out []*unstructured.Unstructured
	for _, object := range objects {
		if issues := object.GetKind() == certmanagerv1.CertificateKind || object.GetKind() == certmanagerv1.IssuerKind; !issues {
			out = append(out, object)
			continue
		}
		if used, is := inUse[object.GetName()]; is {
			for _, n := range used.All() {
				out = append(out, inGeneration(object, n))
			}
			continue
		}
		issuer, _, _ := unstructured.NestedString(object.Object, "spec", "issuerRef", "name")
		if used, is := inUse[issuer]; is {
			rename(object, contract.Generation(issuer, used.Signing), "spec", "issuerRef", "name")
		}
		out = append(out, object)
	}
	return out
}

// inGeneration returns the Certificate or the Issuer of a CA as it is in a generation. The
// common names of two differ, too: by these, servers say whom they accept.
func inGeneration(first *unstructured.Unstructured, n int32) *unstructured.Unstructured {
	object := first.DeepCopy()
	name := contract.Generation(first.GetName(), n)
	object.SetName(name)
	for _, path := range [][]string{{"spec", "secretName"}, {"spec", "commonName"}, {"spec", "ca", "secretName"}} {
		if _, found, _ := unstructured.NestedString(object.Object, path...); found {
			rename(object, name, path...)
		}
	}
	return object
}

// rename sets a text where there is one.
func rename(object *unstructured.Unstructured, name string, path ...string) {
	// It fails only where what leads there is no map, and then there was no text.
	_ = unstructured.SetNestedField(object.Object, name, path...)
}
