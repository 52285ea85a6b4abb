package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/clusterregistry/operator/hack/attest"
)

// sumsFile has the sums of all files of a release.
const sumsFile = "SHA256SUMS"

// verify compares what is published with the directory of the release, and what is said of it
// with what the key has signed: each image byte for byte, each statement, and the sums.
func (r *release) verify(ctx context.Context, key *ecdsa.PublicKey, chart name.Digest, build attest.Build) error {
	expected, err := r.attestations(chart, build)
	if err != nil {
		return err
	}
	var errs []error
	for _, of := range r.images {
		index, err := remote.Index(of.reference(), attest.Options(ctx)...)
		if err == nil {
			err = validate.Index(index)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("image %s: %w", of.reference(), err))
		}
	}
	for _, a := range expected {
		errs = append(errs, a.verify(ctx, key))
	}
	return errors.Join(append(errs, r.verifySums(key))...)
}

// verify expects the statement, signed.
func (a attestation) verify(ctx context.Context, key *ecdsa.PublicKey) error {
	signed, err := attest.Attached(ctx, key, a.artifact, a.kind)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(signed, func(predicate []byte) bool { return sameJSON(predicate, a.predicate) }) {
		return fmt.Errorf("the %s of %s that is signed is another one than that of this release", a.kind, a.artifact)
	}
	return nil
}

// verifySums verifies the signature of the sums, and the sum of each file.
func (r *release) verifySums(key *ecdsa.PublicKey) error {
	file := filepath.Join(r.dir, sumsFile)
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sig, err := os.ReadFile(file + ".sig")
	if err != nil {
		return err
	}
	if err := attest.VerifyFile(key, content, sig); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	for line := range strings.Lines(string(content)) {
		want, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		content, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			errs = append(errs, err)
		} else if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			errs = append(errs, fmt.Errorf("%s has the sum %x, and %s says %s", name, sum, sumsFile, want))
		}
	}
	return errors.Join(errs...)
}

// sameJSON compares JSON without regard to spaces.
func sameJSON(a, b []byte) bool {
	var one, other bytes.Buffer
	return json.Compact(&one, a) == nil && json.Compact(&other, b) == nil && bytes.Equal(one.Bytes(), other.Bytes())
}
