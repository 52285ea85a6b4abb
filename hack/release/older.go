package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterregistry/operator/operator/version"
)

// Older returns the release whose operator is the one that upgrades of the operator begin
// with: the one before the newest. An operator has the version of the newest release that
// it knows.
func Older(releases []version.Release) (version.Release, error) {
	if len(releases) < 2 {
		return version.Release{}, fmt.Errorf("%s has %d releases, and an upgrade of the operator is from the one before the newest", table, len(releases))
	}
	return releases[len(releases)-2], nil
}

// Overlay writes a file for the flag -overlay of "go build", with which an operator that is
// built from a source knows no release after the given one. The function that is returned
// removes it. As long as that release is not released, this is its operator.
func Overlay(source string, last version.Release) (path string, remove func() error, err error) {
	file, err := filepath.Abs(filepath.Join(source, table))
	if err != nil {
		return "", nil, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	content, err = upTo(content, last.Version)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "overlay-")
	if err != nil {
		return "", nil, err
	}
	replacement := filepath.Join(dir, filepath.Base(table))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: replacement}})
	path = filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, os.WriteFile(replacement, content, 0o600), os.WriteFile(path, overlay, 0o600)); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() error { return os.RemoveAll(dir) }, nil
}

// upTo returns a table of releases that ends with one of them.
func upTo(content []byte, last string) ([]byte, error) {
	text := string(content)
	start := strings.Index(text, "\n- version: "+last+"\n")
	if start < 0 {
		return nil, fmt.Errorf("%s: no line \"- version: %s\"", table, last)
	}
	if next := strings.Index(text[start+1:], "\n- version: "); next >= 0 {
		text = text[:start+1+next+1]
	}
	_, err := version.Parse([]byte(text))
	return []byte(text), err
}

// OlderOperator lays out what the older operator is built from: its release's tag, or the
// work tree with an overlay for "go build", which is empty otherwise.
func OlderOperator(ctx context.Context, repository string, releases []version.Release) (source, overlay string, remove func() error, err error) {
	older, err := Older(releases)
	if err != nil {
		return "", "", nil, err
	}
	source, gone, err := Source(ctx, repository, releases, older)
	if err != nil || older.Released {
		return source, "", gone, err
	}
	overlay, remove, err = Overlay(source, older)
	return source, overlay, remove, err
}
