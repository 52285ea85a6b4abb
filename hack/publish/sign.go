package main

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/clusterregistry/operator/hack/attest"
)

// signer signs what is said of artifacts, and has it refer to them where they are published.
type signer interface {
	attest(ctx context.Context, a attestation) error
	// sums signs the file with the sums of all files of a release.
	sums(ctx context.Context, file string) error
}

// keySigner signs with a key. It is for rehearsals.
type keySigner struct{ key *ecdsa.PrivateKey }

func (s keySigner) attest(ctx context.Context, a attestation) error {
	return attest.Attach(ctx, s.key, a.artifact, a.kind, a.predicate)
}

func (s keySigner) sums(_ context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sig, err := attest.SignFile(s.key, content)
	if err != nil {
		return err
	}
	return os.WriteFile(file+".sig", sig, 0o644)
}

// cosign signs without a key, as the workflow that it runs in: the program asks Sigstore
// for a certificate that names the workflow, and its log keeps what was signed.
type cosign struct {
	program string
	// dir is for the predicates, which cosign reads from files.
	dir string
}

func (c cosign) attest(ctx context.Context, a attestation) error {
	if a.kind == attest.Signature {
		return c.run(ctx, "sign", "--yes", a.artifact.String())
	}
	file := filepath.Join(c.dir, "predicate.json")
	if err := os.WriteFile(file, a.predicate, 0o600); err != nil {
		return err
	}
	return c.run(ctx, "attest", "--yes", "--type", string(a.kind), "--predicate", file, a.artifact.String())
}

func (c cosign) sums(ctx context.Context, file string) error {
	return c.run(ctx, "sign-blob", "--yes", "--bundle", file+".sigstore.json", file)
}

func (c cosign) run(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, c.program, args...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", c.program, args[0], err, out)
	}
	return nil
}

// publish pushes a release and signs what is said of it. It returns the chart by its digest.
func publish(ctx context.Context, r *release, s signer, build attest.Build, hub []byte) (name.Digest, error) {
	chart, err := r.push(ctx, hub)
	if err != nil {
		return name.Digest{}, err
	}
	all, err := r.attestations(chart, build)
	if err != nil {
		return name.Digest{}, err
	}
	for _, a := range all {
		if err := s.attest(ctx, a); err != nil {
			return name.Digest{}, fmt.Errorf("%s of %s: %w", a.kind, a.artifact, err)
		}
		fmt.Printf("  signed the %s of %s\n", a.kind, a.artifact)
	}
	return chart, s.sums(ctx, filepath.Join(r.dir, sumsFile))
}
