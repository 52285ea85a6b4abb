package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/operator/version"
)

// pull writes a published image, which its digest identifies, as an archive in which
// it has the name that the local cluster's nodes know it by.
func (m maker) pull(ctx context.Context, of version.Image) (product.Image, error) {
	b := m.named(of.Name, of.Tag)
	from, err := name.NewDigest(m.published + "/" + of.Name + "@" + of.Digest)
	if err != nil {
		return product.Image{}, err
	}
	to, err := name.NewTag(b.Reference, name.StrictValidation)
	if err != nil {
		return product.Image{}, err
	}
	fmt.Printf("  pull %s\n", from)
	pulled, err := remote.Image(from, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return product.Image{}, err
	}
	config, err := pulled.ConfigFile()
	if err != nil {
		return product.Image{}, err
	}
	b.Commit = config.Config.Labels["org.opencontainers.image.revision"]
	digest, err := pulled.Digest()
	if err != nil {
		return product.Image{}, err
	}
	b.Digest = digest.String()
	if err := os.MkdirAll(filepath.Dir(b.Archive), 0o755); err != nil {
		return product.Image{}, err
	}
	partial := b.Archive + ".partial"
	defer func() { _ = os.Remove(partial) }()
	if err := tarball.WriteToFile(partial, to, pulled); err != nil {
		return product.Image{}, fmt.Errorf("pull %s: %w", from, err)
	}
	return b, os.Rename(partial, b.Archive)
}
