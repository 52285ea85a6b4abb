package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/chart/content"
)

// writeChart writes the chart for Helm, which names the operator's image by digest.
func writeChart(_ context.Context, r *release, dir string) error {
	operator := r.images[0]
	files, err := content.Files(content.Options{Source: r.source, Version: operator.tag, Repository: r.repository, Digest: r.digests[0]})
	if err != nil {
		return err
	}
	archive, err := content.Archive(files, operator.created)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, content.ArchiveName(operator.tag)), archive, 0o644)
}
