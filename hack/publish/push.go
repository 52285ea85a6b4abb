package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/clusterregistry/operator/hack/attest"
)

// Media types of Helm and of Artifact Hub.
const (
	helmConfig = "application/vnd.cncf.helm.config.v1+json"
	helmChart  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	hubConfig  = "application/vnd.cncf.artifacthub.config.v1+yaml"
	hubContent = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
	// hubTag is where Artifact Hub looks for what it needs to know of a chart's repository.
	hubTag = "artifacthub.io"
)

// push pushes the images and the chart of a release, and what Artifact Hub reads. It
// returns the chart by its digest.
func (r *release) push(ctx context.Context, hub []byte) (name.Digest, error) {
	for _, of := range r.images {
		if err := unmoved(ctx, of.tag, of.digest); err != nil {
			return name.Digest{}, err
		}
		if err := remote.WriteIndex(of.tag, of.index, attest.Options(ctx)...); err != nil {
			return name.Digest{}, fmt.Errorf("push %s: %w", of.tag, err)
		}
		fmt.Printf("  pushed %s\n", of.reference())
	}
	repository := r.repository + "/charts/" + r.chart.name
	pushed, err := artifact{repository + ":" + r.chart.version, helmConfig, r.chart.metadata, helmChart, r.chart.archive, true}.push(ctx)
	if err != nil {
		return name.Digest{}, err
	}
	_, err = artifact{repository + ":" + hubTag, hubConfig, []byte("{}"), hubContent, hub, false}.push(ctx)
	return pushed, err
}

// unmoved returns an error when a tag is already another image: nodes that have pulled it,
// and those who pinned it, must not get another one.
func unmoved(ctx context.Context, tag name.Tag, digest v1.Hash) error {
	there, err := remote.Head(tag, attest.Options(ctx)...)
	var refused *transport.Error
	if errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w", tag, err)
	}
	if there.Digest != digest {
		return fmt.Errorf("%s is published as %s, and this release has %s; make the release with PUBLISHED=, the directory of the previous one, or choose the next version", tag, there.Digest, digest)
	}
	return nil
}

// artifact is what a registry of images stores that is none.
type artifact struct {
	reference   string
	configType  string
	config      []byte
	contentType string
	content     []byte
	// final is true where the tag is pushed once.
	final bool
}

// push pushes an artifact, and returns it by its digest.
func (a artifact) push(ctx context.Context) (name.Digest, error) {
	tag, err := name.NewTag(a.reference)
	if err != nil {
		return name.Digest{}, err
	}
	m := attest.Manifest{SchemaVersion: 2, Type: types.OCIManifestSchema1}
	if m.Config, err = attest.Blob(ctx, tag.Repository, a.config, a.configType); err != nil {
		return name.Digest{}, err
	}
	content, err := attest.Blob(ctx, tag.Repository, a.content, a.contentType)
	if err != nil {
		return name.Digest{}, err
	}
	m.Layers = []v1.Descriptor{content}
	raw, err := m.RawManifest()
	if err != nil {
		return name.Digest{}, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return name.Digest{}, err
	}
	if a.final {
		if err := unmoved(ctx, tag, digest); err != nil {
			return name.Digest{}, err
		}
	}
	if err := remote.Put(tag, m, attest.Options(ctx)...); err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w", tag, err)
	}
	fmt.Printf("  pushed %s\n", tag.Digest(digest.String()))
	return tag.Digest(digest.String()), nil
}
