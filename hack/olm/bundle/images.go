package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	releases "github.com/clusterregistry/operator/operator/version"
)

// releases returns the registry's releases as the source knows them.
func (o options) releases() ([]releases.Release, error) {
	text, err := os.ReadFile(filepath.Join(o.source, "operator", "version", "releases.yaml"))
	if err != nil {
		return nil, err
	}
	return releases.Decode(text)
}

// operatorImage is the image that the Deployment runs.
func (o options) operatorImage() string {
	if o.image != "" {
		return o.image
	}
	return o.reference(packageName, o.version)
}

// images returns every image that the operator or a registry that it installs can
// run, so that mirrors and hosts without the internet have them all.
func (o options) images(known []releases.Release) []operatorsv1alpha1.RelatedImage {
	out := []operatorsv1alpha1.RelatedImage{{Name: "operator", Image: o.operatorImage()}}
	add := func(name, tag string) {
		image := operatorsv1alpha1.RelatedImage{Name: strings.TrimPrefix(name, "clusterregistry-") + "-" + tag, Image: o.reference(name, tag)}
		if !slices.Contains(out, image) {
			out = append(out, image)
		}
	}
	for _, r := range known {
		add("clusterregistry-apiserver", r.Version)
		add("clusterregistry-helper", r.Version)
		add("etcd", r.Etcd)
		add(releases.ControllerImage, r.Version)
		add(releases.BackupImage, r.Version)
	}
	return out
}

// reference returns an image's full name: by digest, when that is known.
func (o options) reference(name, tag string) string {
	if digest := o.digests[name+":"+tag]; digest != "" {
		return o.repository + "/" + name + "@" + digest
	}
	return o.repository + "/" + name + ":" + tag
}
