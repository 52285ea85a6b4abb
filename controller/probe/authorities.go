package probe

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// maxRSA bounds the RSA keys of CAs, in bits, as Go itself does those of servers: the
// work of verifying a signature grows with the square of it.
const maxRSA = 8192

// authorities returns the CAs in PEM; nil, for those of the system, when there is no
// text. The error ends a sentence that begins with what has the text. What is no
// certificate is passed over.
func authorities(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if key, ok := certificate.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
			return nil, fmt.Errorf("has an RSA key of %d bits: at most %d are verified with", key.N.BitLen(), maxRSA)
		}
		pool.AddCert(certificate)
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("has no certificate that can be read")
	}
	return pool, nil
}
