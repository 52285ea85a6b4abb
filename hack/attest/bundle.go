package attest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	// bundleType is the media type of what is signed, with its signature.
	bundleType  = "application/vnd.dev.sigstore.bundle.v0.3+json"
	payloadType = "application/vnd.in-toto+json"
)

// bundle is a Sigstore bundle of a statement that a key has signed, in a DSSE envelope.
type bundle struct {
	MediaType string   `json:"mediaType"`
	Material  material `json:"verificationMaterial"`
	Envelope  envelope `json:"dsseEnvelope"`
}

// material says how to verify it: with the public key of which the hint is the sum.
type material struct {
	PublicKey publicKey `json:"publicKey"`
}

type publicKey struct {
	Hint string `json:"hint"`
}

type envelope struct {
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig []byte `json:"sig"`
}

// signed returns the sum of what DSSE has signed of an envelope: the type and the
// payload, each with its length before it.
func (e envelope) signed() []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload))
	return sum[:]
}

// Sign returns a bundle with a statement of a kind about a digest, signed by a key.
func Sign(key *ecdsa.PrivateKey, kind Kind, digest string, predicate []byte) ([]byte, error) {
	payload, err := newStatement(kind, digest, predicate)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	out := bundle{MediaType: bundleType, Envelope: envelope{Payload: payload, PayloadType: payloadType}}
	out.Material.PublicKey.Hint = base64.StdEncoding.EncodeToString(sum[:])
	sig, err := ecdsa.SignASN1(rand.Reader, key, out.Envelope.signed())
	if err != nil {
		return nil, err
	}
	out.Envelope.Signatures = []signature{{sig}}
	return json.Marshal(out)
}

// Open returns the predicate in a bundle, if the key has signed it as a statement of the
// kind about the digest.
func Open(content []byte, key *ecdsa.PublicKey, kind Kind, digest string) ([]byte, error) {
	var b bundle
	if err := json.Unmarshal(content, &b); err != nil {
		return nil, fmt.Errorf("this is no bundle: %w", err)
	}
	if b.MediaType != bundleType || b.Envelope.PayloadType != payloadType || len(b.Envelope.Signatures) != 1 {
		return nil, fmt.Errorf("this is a %q of a %q with %d signatures, not a bundle of one statement", b.MediaType, b.Envelope.PayloadType, len(b.Envelope.Signatures))
	}
	if !ecdsa.VerifyASN1(key, b.Envelope.signed(), b.Envelope.Signatures[0].Sig) {
		return nil, errors.New("the signature is not that of the key: what is signed was changed, or another key has signed it")
	}
	return read(b.Envelope.Payload, kind, digest)
}

// PublicPEM returns the public part of a key in the form that cosign and openssl read.
func PublicPEM(key *ecdsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// SignFile returns the signature of a file in the form that "openssl dgst -verify" reads.
func SignFile(key *ecdsa.PrivateKey, content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	return ecdsa.SignASN1(rand.Reader, key, sum[:])
}

// VerifyFile returns an error unless the key has signed a file.
func VerifyFile(key *ecdsa.PublicKey, content, sig []byte) error {
	sum := sha256.Sum256(content)
	if !ecdsa.VerifyASN1(key, sum[:], sig) {
		return errors.New("the signature is not that of the key: the file was changed, or another key has signed it")
	}
	return nil
}
