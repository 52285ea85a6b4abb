package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	history "github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

// digestsOf returns the digests that releases have recorded, by the image's name and
// tag.
func digestsOf(releases []version.Release) map[string]string {
	out := map[string]string{}
	for _, of := range releases {
		for _, image := range of.Runs() {
			if image.Digest != "" {
				out[image.Name+":"+image.Tag] = image.Digest
			}
		}
	}
	return out
}

// asRecorded returns which images are others than the table says: the operator would
// ask for images that are not published.
func (r *release) asRecorded() error {
	var errs []error
	for i, c := range r.images {
		if want := r.recorded[c.name+":"+c.tag]; want != "" && want != r.digests[i] {
			errs = append(errs, fmt.Errorf("image %s:%s has the digest %s, and operator/version/releases.yaml has %s", c.name, c.tag, r.digests[i], want))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nif they were published, take them from where that was made, with PUBLISHED=; if not, use the Go (go version) and the go.mod that these digests come from, or record them anew with \"make digests\"", errors.Join(errs...))
}

// record makes the images that releases run that are not released, and writes their
// digests to a table.
func (r *release) record(ctx context.Context, table string) error {
	content, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	releases, err := version.Parse(content)
	if err != nil {
		return err
	}
	var open, final []version.Release
	for _, of := range releases {
		if of.Released {
			final = append(final, of)
		} else {
			open = append(open, of)
		}
	}
	digests := digestsOf(final)
	var etcd []string
	for _, v := range etcds(open) {
		if digests["etcd:"+v] == "" {
			etcd = append(etcd, v)
		}
	}
	images, err := r.registries(ctx, releases, open, etcd)
	if err != nil {
		return err
	}
	if err := r.addDigests(ctx, images, digests); err != nil {
		return err
	}
	out, changed, err := history.Record(content, digests)
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		fmt.Println("every release is released, so there are no digests to record")
		return nil
	}
	if err := os.WriteFile(table, out, 0o644); err != nil {
		return err
	}
	fmt.Printf("%s has the digests of %s; RELEASE.md says what comes next\n", table, strings.Join(changed, ", "))
	return nil
}

// addDigests adds the digests of images, each made for all architectures.
func (r *release) addDigests(ctx context.Context, images []compiled, digests map[string]string) error {
	scratch, err := os.MkdirTemp("", "digests-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	r.images = images
	if err := writeImages(ctx, r, scratch); err != nil {
		return err
	}
	for i, c := range images {
		digests[c.name+":"+c.tag] = r.digests[i]
	}
	return nil
}
