package version

import "slices"

// Images are the digests of the images that a registry of a release runs, each
// that of the index of all architectures.
type Images struct {
	// Server is the digest of the servers' image, whose tag is the release's version.
	Server string `json:"clusterregistry-apiserver"`
	// Helper is the digest of the helper's image, whose tag is Release.Helper.
	Helper string `json:"clusterregistry-helper"`
	// Etcd is the digest of etcd's image, whose tag is Release.Etcd.
	Etcd string `json:"etcd"`
	// Controller is the digest of the controller's image, whose tag is the release's
	// version.
	Controller string `json:"clusterregistry-controller"`
	// Backup is the digest of the image of the program that keeps backups, whose tag is
	// the release's version.
	Backup string `json:"clusterregistry-backup"`
}

// Release is a release of the registry.
type Release struct {
	// Version is the semantic version, beginning with "v".
	Version string `json:"version"`
	// Released is true when the release is final: its entry never changes again, and it
	// is built from the tag of its version.
	Released bool `json:"released"`
	// Images are the digests of the images that a registry of the release runs, as they
	// are published. Empty as long as that is not decided: they are recorded before the
	// release is final, and never change after that.
	Images Images `json:"images,omitzero"`
	// Etcd is the version of etcd that the release runs with.
	Etcd string `json:"etcd"`
	// Helper is the release whose helper image the pods of etcd have. A newer one
	// would replace them, and so is named only when the helper has changed.
	Helper string `json:"helper"`
	// Layout names the manifests that the release is rendered from, a directory of
	// manifests/registry. It never changes once a release with it is released.
	Layout string `json:"layout"`
	// Members is what etcd's pods are made of: the release's own, unless what runs is
	// composed of two releases.
	Members Members `json:"-"`
	// UpgradesFrom are the releases that a registry can be brought to this one from.
	UpgradesFrom []string `json:"upgradesFrom,omitempty"`
	// Serves are the versions of clusterregistry.k8s.io that clients can use.
	Serves []string `json:"serves"`
	// Reads are the versions that the release understands in etcd.
	Reads []string `json:"reads"`
	// Stores is the version that the release writes to etcd.
	Stores string `json:"stores"`
	// Host are the versions of Kubernetes behind whose aggregator it is tested.
	Host Range `json:"host"`
	// Kubectl are the versions of kubectl that it is tested with.
	Kubectl Range `json:"kubectl"`
}

// Members is what the pods of etcd are made of, as a release brings it. It stays
// when the servers of an older release return.
type Members struct {
	// Release is the release that brings it.
	Release string
	// Etcd, Helper and Layout are those of the release.
	Etcd, Helper, Layout string
	// EtcdDigest and HelperDigest are those of the images of Etcd and Helper, empty where
	// none is recorded.
	EtcdDigest, HelperDigest string
}

// Served returns the versions of clusterregistry.k8s.io that any of the releases serves.
func Served(releases []Release) []string {
	var out []string
	for _, release := range releases {
		for _, served := range release.Serves {
			if !slices.Contains(out, served) {
				out = append(out, served)
			}
		}
	}
	return out
}

// own returns what the pods of etcd are made of by the release itself.
func (r Release) own() Members {
	return Members{Release: r.Version, Etcd: r.Etcd, Helper: r.Helper, Layout: r.Layout, EtcdDigest: r.Images.Etcd, HelperDigest: r.Images.Helper}
}

// Same reports whether pods of one and the other are equal, whichever release
// brought them.
func (m Members) Same(other Members) bool {
	other.Release = m.Release
	return m == other
}

// Range is a range of minor versions of Kubernetes, such as "1.34", ends included.
type Range struct {
	From string `json:"from"`
	To   string `json:"to"`
}
