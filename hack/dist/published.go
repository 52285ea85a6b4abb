package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// published is a release before this one, or none. Its images go into this
// release as they are: the tag of a published image never moves, and built anew
// it would differ when Go or a CA certificate has changed since.
type published struct {
	dir string
	// digests are those of its images, by reference; sums those of its files, by name.
	digests, sums map[string]string
}

// readPublished reads what is in the folder of a release; without a folder
// nothing was published.
func readPublished(dir string) (published, error) {
	if dir == "" {
		return published{}, nil
	}
	images, imagesErr := os.ReadFile(filepath.Join(dir, imageList))
	sums, sumsErr := os.ReadFile(filepath.Join(dir, sumsFile))
	if err := errors.Join(imagesErr, sumsErr); err != nil {
		return published{}, fmt.Errorf("the release before this one: %w", err)
	}
	p := published{dir: dir, digests: map[string]string{}, sums: map[string]string{}}
	for line := range strings.Lines(string(images)) {
		reference, digest, _ := strings.Cut(strings.TrimSpace(line), "@")
		p.digests[reference] = digest
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		p.sums[name] = sum
	}
	return p, nil
}

// has reports whether an image is in there.
func (p published) has(reference string) bool { return p.digests[reference] != "" }

// copy copies a file into the folder of another release, if it is what it was
// when its sum was taken.
func (p published) copy(name, dir string) (err error) {
	from, to := filepath.Join(p.dir, name), filepath.Join(dir, name)
	got, err := sum(from)
	if err != nil {
		return err
	}
	if want := p.sums[name]; got != want {
		return fmt.Errorf("%s has the sum %s, and %s says %q; get the release anew", from, got, sumsFile, want)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
