package version

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Image names an image within its repository.
type Image struct {
	// Name is the image's name, such as etcd, and Tag its tag, such as v3.6.14.
	Name, Tag string
	// Digest is the one that is recorded, empty for none.
	Digest string
}

const (
	// ControllerImage is the name of the controller's image.
	ControllerImage = "clusterregistry-controller"
	// BackupImage is the name of the image of the program that keeps backups.
	BackupImage = "clusterregistry-backup"
)

// Runs returns the images that a registry of the release runs.
func (r Release) Runs() []Image {
	return []Image{
		{Name: "clusterregistry-apiserver", Tag: r.Version, Digest: r.Images.Server},
		{Name: "clusterregistry-helper", Tag: r.Helper, Digest: r.Images.Helper},
		{Name: "etcd", Tag: r.Etcd, Digest: r.Images.Etcd},
		{Name: ControllerImage, Tag: r.Version, Digest: r.Images.Controller},
		{Name: BackupImage, Tag: r.Version, Digest: r.Images.Backup},
	}
}

// imageDigest is a digest as the OCI image specification writes it.
var imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// validateImages returns what is wrong with the digests of a release. It needs all of
// them to be final, and none before.
func (r Release) validateImages() error {
	if r.Images == (Images{}) {
		if r.Released {
			return errors.New("it is released without the digests of its images, and no digest can be added later: set released to false, run \"make digests\" and \"make update\", and then set it to true")
		}
		return nil
	}
	var errs []error
	for _, image := range r.Runs() {
		if !imageDigest.MatchString(image.Digest) {
			errs = append(errs, fmt.Errorf("the digest %q of image %s is not like sha256: and 64 hexadecimal digits; \"make digests\" records those of all images of a release", image.Digest, image.Name))
		}
	}
	return errors.Join(errs...)
}

// sameImages returns the images that several releases run, and have recorded with
// different digests: a tag that is published never moves.
func sameImages(releases []Release) error {
	var errs []error
	var known []Image
	for _, r := range releases {
		for _, image := range r.Runs() {
			i := slices.IndexFunc(known, func(k Image) bool { return k.Name == image.Name && k.Tag == image.Tag })
			switch {
			case image.Digest == "":
			case i < 0:
				known = append(known, image)
			case known[i].Digest != image.Digest:
				errs = append(errs, fmt.Errorf("releases.yaml: %s has the digest %s for image %s:%s, and an earlier release has %s: one tag is one image", r.Version, image.Digest, image.Name, image.Tag, known[i].Digest))
			}
		}
	}
	return errors.Join(errs...)
}
