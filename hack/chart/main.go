// Command chart writes the Helm chart in chart/, made of manifests/operator,
// manifests/operator-namespaced and manifests/monitoring:
//
//	chart write    "make chart"
//	chart verify   "make verify-chart": fails when the files are not as they would be written
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/hack/chart/content"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case slices.Equal(args, []string{"write"}):
		return write(content.Directory)
	case slices.Equal(args, []string{"verify"}):
		return verify(content.Directory)
	}
	return errors.New("usage: chart write, or chart verify")
}

// write replaces a directory by the chart.
func write(dir string) error {
	files, err := content.Files(content.Options{Source: "."})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// verify names the files of a directory that are not as write would write them.
func verify(dir string) error {
	files, err := content.Files(content.Options{Source: "."})
	if err != nil {
		return err
	}
	there, err := content.Read(dir)
	if err != nil {
		return err
	}
	if differ := content.Differ(there, files); len(differ) > 0 {
		return fmt.Errorf("%s is not what the manifests say, in %s; run make chart, and change the manifests or hack/chart, never the files there", dir, strings.Join(differ, ", "))
	}
	return nil
}
