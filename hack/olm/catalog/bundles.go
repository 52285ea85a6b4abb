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
	"github.com/clusterregistry/operator/operator/version"
)

// Older returns the version of the operator before this one.
func Older() (string, error) {
	releases, err := version.Releases()
	if err != nil {
		return "", err
	}
	older, err := release.Older(releases)
	return older.Version, err
}

// OlderBundle writes the bundle of the operator before this one into the folder out. More
// arguments are the bundle program's.
func OlderBundle(ctx context.Context, out string, args ...string) (err error) {
	releases, err := version.Releases()
	if err != nil {
		return err
	}
	older, err := release.Older(releases)
	if err != nil {
		return err
	}
	source, _, remove, err := release.OlderOperator(ctx, ".", releases)
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
	if _, err := Run(ctx, filepath.Join("hack", "olm"), "go", "build", "-o", program, "./bundle"); err != nil {
		return err
	}
	_, err = Run(ctx, ".", program, args...)
	return err
}

// Run runs a program in a folder and returns what it prints. The error has what it
// prints to its standard error.
func Run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
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
