package validation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// bundles are CA bundles that need not be looked at: those of the stored cluster, since
// what is stored already makes no write fail, and those that were found right. To parse
// certificates is most of what a creation costs, and both forms and all endpoints of a
// cluster mostly have the same.
type bundles struct{ known [][]byte }

// bundlesOf returns those of a stored cluster, none for a new one.
func bundlesOf(spec *clusterregistry.ClusterSpec) *bundles {
	if spec == nil {
		return &bundles{}
	}
	known := [][]byte{spec.KubernetesAPIEndpoints.CABundle}
	for _, endpoint := range spec.Endpoints {
		known = append(known, endpoint.CABundle)
	}
	return &bundles{known}
}

// has reports whether a bundle need not be looked at.
func (b *bundles) has(bundle []byte) bool {
	return slices.ContainsFunc(b.known, func(known []byte) bool { return bytes.Equal(known, bundle) })
}

// caBundles returns the faults of an object's CA bundles. What is known is not parsed. The
// values are not repeated: one that is refused may be a private key.
func caBundles(given map[*field.Path][]byte, known *bundles) field.ErrorList {
	var faults field.ErrorList
	for path, bundle := range given {
		if len(bundle) > MaxCABundle {
			faults = append(faults, size(path, len(bundle), MaxCABundle, fmt.Sprintf("may not be more than %d bytes", MaxCABundle))...)
			continue
		}
		if known.has(bundle) {
			continue
		}
		if fault := certificatesOnly(bundle); fault != "" {
			faults = append(faults, field.Invalid(path, fmt.Sprintf("%d bytes", len(bundle)), fault))
			continue
		}
		known.known = append(known.known, bundle)
	}
	return faults
}

// certificatesOnly returns what is wrong with PEM that should hold
// certificates and nothing else, or "". No bundle at all is legal.
func certificatesOnly(bundle []byte) string {
	if len(bundle) == 0 {
		return ""
	}
	// Decode skips what is no well-formed block, and a key is one in any form.
	if bytes.Contains(bundle, []byte("PRIVATE KEY-----")) {
		return "must not contain a private key: the registry is readable by many; remove the key, and replace it if it was ever public"
	}
	for n := 1; ; n++ {
		before := bundle
		block, rest := pem.Decode(bundle)
		if block == nil {
			if n == 1 {
				return "must be certificates in PEM (-----BEGIN CERTIFICATE-----), and there is none"
			}
			if len(bytes.TrimSpace(before)) > 0 {
				return fmt.Sprintf("must be certificates in PEM only; something else follows the %d. block", n-1)
			}
			return ""
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Sprintf("must be certificates only; the %d. block is %q", n, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("must be certificates; the %d. does not parse: %v", n, err)
		}
		bundle = rest
	}
}
