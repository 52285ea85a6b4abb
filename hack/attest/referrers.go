package attest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// predicateAnnotation has the type of the predicate of what refers to an artifact.
const predicateAnnotation = "dev.sigstore.bundle.predicateType"

// Manifest is one of an OCI artifact that is no image.
type Manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	Type          types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        v1.Descriptor     `json:"config"`
	Layers        []v1.Descriptor   `json:"layers"`
	Subject       *v1.Descriptor    `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// RawManifest returns the bytes that are pushed.
func (m Manifest) RawManifest() ([]byte, error) { return json.Marshal(m) }

// MediaType returns the type that they are pushed as.
func (m Manifest) MediaType() (types.MediaType, error) { return m.Type, nil }

// Options say how registries are called: with the credentials that Docker has stored.
func Options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// Blob uploads content and returns how a manifest refers to it.
func Blob(ctx context.Context, repository name.Repository, content []byte, kind string) (v1.Descriptor, error) {
	layer := static.NewLayer(content, types.MediaType(kind))
	digest, err := layer.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	if err := remote.WriteLayer(repository, layer, Options(ctx)...); err != nil {
		return v1.Descriptor{}, fmt.Errorf("upload %s to %s: %w", digest, repository, err)
	}
	return v1.Descriptor{MediaType: types.MediaType(kind), Digest: digest, Size: int64(len(content))}, nil
}

// Attach signs a statement about an artifact and has it refer to that.
func Attach(ctx context.Context, key *ecdsa.PrivateKey, artifact name.Digest, kind Kind, predicate []byte) error {
	content, err := Sign(key, kind, artifact.DigestStr(), predicate)
	if err != nil {
		return err
	}
	head, err := remote.Head(artifact, Options(ctx)...)
	if err != nil {
		return fmt.Errorf("attest %s: %w", artifact, err)
	}
	m := Manifest{SchemaVersion: 2, Type: types.OCIManifestSchema1, ArtifactType: bundleType,
		Subject:     &v1.Descriptor{MediaType: head.MediaType, Digest: head.Digest, Size: head.Size},
		Annotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", predicateAnnotation: predicates[kind]}}
	if m.Config, err = Blob(ctx, artifact.Repository, []byte("{}"), "application/vnd.oci.empty.v1+json"); err != nil {
		return err
	}
	layer, err := Blob(ctx, artifact.Repository, content, bundleType)
	if err != nil {
		return err
	}
	m.Layers = []v1.Descriptor{layer}
	raw, err := m.RawManifest()
	if err != nil {
		return err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return remote.Put(artifact.Digest(digest.String()), m, Options(ctx)...)
}

// Attached returns the predicates of a kind that refer to an artifact and that the key has
// signed. It fails where there are none, and where one was changed.
func Attached(ctx context.Context, key *ecdsa.PublicKey, artifact name.Digest, kind Kind) (out [][]byte, _ error) {
	referrers, err := remote.Referrers(artifact, Options(ctx)...)
	if err != nil {
		return nil, err
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, entry := range list.Manifests {
		content, is, err := fetch(ctx, artifact, entry, kind)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", kind, artifact, err))
		}
		if !is {
			continue
		}
		predicate, err := Open(content, key, kind, artifact.DigestStr())
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", kind, artifact, err))
			continue
		}
		out = append(out, predicate)
	}
	if len(out) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("%s has no %s", artifact, kind)
	}
	return out, errors.Join(errs...)
}

// fetch returns the bundle in a referrer, and whether it is one of the kind.
func fetch(ctx context.Context, artifact name.Digest, entry v1.Descriptor, kind Kind) ([]byte, bool, error) {
	got, err := remote.Get(artifact.Digest(entry.Digest.String()), Options(ctx)...)
	if err != nil {
		return nil, false, err
	}
	var m Manifest
	if err := json.Unmarshal(got.Manifest, &m); err != nil {
		return nil, false, err
	}
	if m.ArtifactType != bundleType || m.Annotations[predicateAnnotation] != predicates[kind] || len(m.Layers) != 1 {
		return nil, false, nil
	}
	layer, err := remote.Layer(artifact.Digest(m.Layers[0].Digest.String()), Options(ctx)...)
	if err != nil {
		return nil, false, err
	}
	content, err := layer.Compressed() // compares the digest
	if err != nil {
		return nil, false, err
	}
	text, err := io.ReadAll(content)
	return text, err == nil, errors.Join(err, content.Close())
}
