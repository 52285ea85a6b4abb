package validation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// bundles are the CA bundles of a stored cluster. To parse certificates is most of what
// a write costs, and what is stored already makes no write fail.
type bundles map[string]bool

// bundlesOf returns those of a stored cluster, none for a new one.
func bundlesOf(spec *clusterregistry.ClusterSpec) bundles {
	if spec == nil {
		return nil
	}
	known := bundles{string(spec.KubernetesAPIEndpoints.CABundle): true}
	for _, endpoint := range spec.Endpoints {
		known[string(endpoint.CABundle)] = true
	}
	return known
}

// caBundles returns the faults of an object's CA bundles. What is known is not parsed. The
// values are not repeated: one that is refused may be a private key.
func caBundles(given map[*field.Path][]byte, known bundles) field.ErrorList {
	var faults field.ErrorList
	for path, bundle := range given {
		if len(bundle) > MaxCABundle {
			faults = append(faults, size(path, len(bundle), MaxCABundle, fmt.Sprintf("may not be more than %d bytes", MaxCABundle))...)
			continue
		}
		if known[string(bundle)] {
			continue
		}
		if fault := certificatesOnly(bundle); fault != "" {
			faults = append(faults, field.Invalid(path, fmt.Sprintf("%d bytes", len(bundle)), fault))
		}
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
