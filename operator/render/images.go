package render

import (
	kustomize "sigs.k8s.io/kustomize/api/types"

	"github.com/clusterregistry/operator/operator/version"
)

// PublishedRepository is where this project publishes its images.
const PublishedRepository = "ghcr.io/clusterregistry"

const (
	// ImageDigestsPublished is in the repository where they are published, or in a
	// mirror that answers by its name.
	ImageDigestsPublished ImageDigests = "Published"
	// ImageDigestsAlways is in every repository: mirrors keep digests.
	ImageDigestsAlways ImageDigests = "Always"
	// ImageDigestsNever is in none, such as where images were rebuilt, or copied by a tool
	// that changes digests.
	ImageDigestsNever ImageDigests = "Never"
)

// in reports whether the images of a repository have their published digests.
func (d ImageDigests) in(repository string) bool {
	switch d {
	case ImageDigestsAlways:
		return true
	case ImageDigestsPublished:
		return repository == PublishedRepository
	}
	return false
}

// images says where the images come from, each of which has a bare name in the
// manifests. The tag of an image with a digest says to people what it is.
func images(in Input) []kustomize.Image {
	repository := in.Environment.ImageRepository
	if r := in.Registry.Spec.Images.Repository; r != "" {
		repository = r
	}
	release := in.Release
	all := []kustomize.Image{
		{Name: "clusterregistry-apiserver", NewTag: release.Version, Digest: release.ServerDigest},
		{Name: "clusterregistry-helper", NewTag: release.Helper, Digest: release.HelperDigest},
		{Name: "etcd", NewTag: release.Etcd, Digest: release.EtcdDigest},
		{Name: version.ControllerImage, NewTag: release.Version, Digest: release.ControllerDigest},
		{Name: version.BackupImage, NewTag: release.Version, Digest: release.BackupDigest},
	}
	for i := range all {
		all[i].NewName = repository + "/" + all[i].Name
		if !in.Environment.ImageDigests.in(repository) {
			all[i].Digest = ""
		}
	}
	return all
}
