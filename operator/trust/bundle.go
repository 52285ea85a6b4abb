package trust

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"time"
)

// Parse returns the certificates of a bundle, in their order, without what is none.
func Parse(bundle []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return out
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, certificate)
		}
	}
}

// Encode returns a certificate in PEM.
func Encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// NonEmpty returns a bundle as it is, or nil when no certificate is in it.
func NonEmpty(bundle []byte) []byte {
	if len(Parse(bundle)) == 0 {
		return nil
	}
	return bundle
}

// Union returns a bundle as it is, and behind it the certificates of another one
// that it lacks.
func Union(bundle, other []byte) []byte {
	out := bytes.Clone(bundle)
	known := Parse(out)
	for _, certificate := range Parse(other) {
		if slices.ContainsFunc(known, certificate.Equal) {
			continue
		}
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, Encode(certificate)...)
		known = append(known, certificate)
	}
	return out
}

// Valid returns the certificates of a bundle that have not expired.
func Valid(bundle []byte, now time.Time) []byte {
	var out []byte
	for _, certificate := range Parse(bundle) {
		if now.Before(certificate.NotAfter) {
			out = append(out, Encode(certificate)...)
		}
	}
	return out
}

// contains reports whether a bundle has all certificates of another one.
func contains(bundle, other []byte) bool {
	known := Parse(bundle)
	return !slices.ContainsFunc(Parse(other), func(c *x509.Certificate) bool { return !slices.ContainsFunc(known, c.Equal) })
}

// KeyFingerprint returns the SHA-256, in hexadecimal, of the public key of a bundle's
// first certificate. It stays when that certificate is renewed. Of what is no
// certificate, it is that of the text.
func KeyFingerprint(bundle []byte) string {
	key := bundle
	if certificates := Parse(bundle); len(certificates) > 0 {
		key = certificates[0].RawSubjectPublicKeyInfo
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}
