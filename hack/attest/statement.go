// Package attest says what artifacts are and where they come from, in in-toto statements
// that a key signs and that a registry of images keeps as referrers of the artifact, in
// Sigstore's bundle format.
package attest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kind is what is attested, by the name that cosign has for it.
type Kind string

// The kinds.
const (
	// Signature says that the project published the artifact.
	Signature Kind = "signature"
	// Provenance says from which source it was built, and by whom: SLSA v1.
	Provenance Kind = "slsaprovenance1"
	// Materials are what it was linked from: SPDX.
	Materials Kind = "spdxjson"
)

// predicates are the types of the predicates of the kinds.
var predicates = map[Kind]string{
	Signature:  "https://sigstore.dev/cosign/sign/v1",
	Provenance: "https://slsa.dev/provenance/v1",
	Materials:  "https://spdx.dev/Document",
}

const statementType = "https://in-toto.io/Statement/v1"

// statement is one of in-toto: a predicate about whatever has one of the digests.
type statement struct {
	Type          string          `json:"_type"`
	Subject       []subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

// newStatement returns a statement of a kind about the artifact of a digest such as
// "sha256:0123...".
func newStatement(kind Kind, digest string, predicate []byte) ([]byte, error) {
	algorithm, hex, found := strings.Cut(digest, ":")
	if !found || predicates[kind] == "" {
		return nil, fmt.Errorf("there are no statements of the kind %q about %q", kind, digest)
	}
	return json.Marshal(statement{
		Type: statementType, Subject: []subject{{Digest: map[string]string{algorithm: hex}}},
		PredicateType: predicates[kind], Predicate: predicate,
	})
}

// read returns the predicate of a statement, if it is one of the kind about the digest.
func read(payload []byte, kind Kind, digest string) ([]byte, error) {
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, fmt.Errorf("what is signed is no statement: %w", err)
	}
	if s.Type != statementType || s.PredicateType != predicates[kind] {
		return nil, fmt.Errorf("what is signed is a %s with %s, not with %s", s.Type, s.PredicateType, predicates[kind])
	}
	algorithm, hex, _ := strings.Cut(digest, ":")
	for _, subject := range s.Subject {
		if subject.Digest[algorithm] == hex && hex != "" {
			return s.Predicate, nil
		}
	}
	return nil, fmt.Errorf("what is signed is about %v, not about %s", s.Subject, digest)
}
