package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/hack/release"
)

// OlderBundle writes the bundle of the operator before this one, made from its own
// commit, into the folder out. More arguments are the bundle program's.
func OlderBundle(ctx context.Context, out string, args ...string) (err error) {
	older := release.OlderOperator
	commit, err := release.Commit(ctx, ".", older)
	if err != nil {
		return err
	}
	source, remove, err := release.Checkout(ctx, ".", commit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	stamp, err := product.ReadStamp(ctx, source)
	if err != nil {
		return err
	}
	return Bundle(ctx, append([]string{"-source=" + source, "-version=" + older.Version, "-replaces=", "-out=" + out, "-created-at=" + stamp.Date}, args...)...)
}

// Bundle runs the program that makes bundles, from the top of the repository.
func Bundle(ctx context.Context, args ...string) error {
	dir, err := os.MkdirTemp("", "bundle-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "bundle")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./bundle")
	build.Dir = filepath.Join("hack", "olm")
	for _, cmd := range []*exec.Cmd{build, exec.CommandContext(ctx, program, args...)} {
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, text)
		}
	}
	return nil
}

// Version returns the operator's version ("v0.2.0") of the bundle in a folder.
func Version(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil || len(paths) != 1 {
		return "", fmt.Errorf("%s is no bundle: it has %d ClusterServiceVersions: %w", dir, len(paths), err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		return "", err
	}
	var csv struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(text, &csv); err != nil {
		return "", fmt.Errorf("%s: %w", paths[0], err)
	}
	_, version, _ := strings.Cut(csv.Metadata.Name, ".")
	return version, nil
}
