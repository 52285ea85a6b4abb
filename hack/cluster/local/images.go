package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/image"
)

// platformImage describes an image that the cluster itself runs.
type platformImage struct {
	name, program string
	component     components.Component
	args          []string
}

// platform are the images of the cluster's own pods. cert-manager is one
// program under the three names that its chart asks for.
var platform = []platformImage{
	{name: "pause", program: "pause", component: components.Pause},
	{name: "coredns", program: "coredns", component: components.CoreDNS},
	{name: "storage-provisioner", program: "storage-provisioner", component: components.Provisioner},
	{name: "cert-manager-controller", program: "cert-manager", component: components.CertManager, args: []string{"controller"}},
	{name: "cert-manager-cainjector", program: "cert-manager", component: components.CertManager, args: []string{"cainjector"}},
	{name: "cert-manager-webhook", program: "cert-manager", component: components.CertManager, args: []string{"webhook"}},
}

// platformReference returns the full name of one of the platform's images.
func platformReference(name string) string {
	for _, p := range platform {
		if p.name == name {
			return fmt.Sprintf("%s/%s:%s", image.LocalRepository, name, p.component.Version)
		}
	}
	panic("the platform has no image " + name)
}

// platformImages packs the platform's images into one archive, kept beside
// the programs that it is made of.
func (c *Cluster) platformImages(bins binaries) (string, error) {
	// The folder of a component changes with its content, so the archive's
	// name follows from them all.
	path := filepath.Join(c.Builder.Cache, "images", "platform-"+bins.key()+".tar")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	var specs []image.Spec
	for _, p := range platform {
		specs = append(specs, image.Spec{
			Reference:  platformReference(p.name),
			Programs:   []string{filepath.Join(bins[p.component.Name], p.program)},
			Entrypoint: append([]string{"/usr/local/bin/" + p.program}, p.args...),
		})
	}
	_, err := image.WriteArchive(path, specs...)
	return path, err
}
