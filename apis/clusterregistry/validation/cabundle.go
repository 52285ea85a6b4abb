package validation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// caBundles returns the faults of an object's CA bundles. The values are not
// repeated: one that is refused may be a private key.
func caBundles(bundles map[*field.Path][]byte, object *field.Path) field.ErrorList {
	var faults field.ErrorList
	total := 0
	for path, bundle := range bundles {
		total += len(bundle)
		if len(bundle) > MaxCABundle {
			faults = append(faults, size(path, len(bundle), MaxCABundle, fmt.Sprintf("may not be more than %d bytes", MaxCABundle))...)
			continue
		}
		if fault := certificatesOnly(bundle); fault != "" {
			faults = append(faults, field.Invalid(path, fmt.Sprintf("%d bytes", len(bundle)), fault))
		}
	}
	return append(faults, size(object, total, MaxCABundles, fmt.Sprintf("must have at most %d bytes of CA bundles in all", MaxCABundles))...)
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
