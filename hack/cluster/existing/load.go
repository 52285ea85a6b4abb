package existing

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/clusterregistry/operator/hack/cluster/image"
)

// Load pushes the images of an archive to the registry that their names begin with, from where
// the cluster's nodes pull them: there is no general way into a cluster's nodes. Credentials are
// those that Docker and Podman keep for the user.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	opener := func() (io.ReadCloser, error) { return os.Open(archive) }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		return fmt.Errorf("%s: %w; make images writes such archives", archive, err)
	}
	for _, descriptor := range manifest {
		for _, reference := range descriptor.RepoTags {
			if strings.HasPrefix(reference, image.LocalRepository+"/") {
				return fmt.Errorf("the nodes of an existing cluster can't get %s, a name that exists on clusters of this computer only: set IMAGE_REPOSITORY to a repository that you may push to and the nodes may pull from, such as registry.example/team, in this and in all further commands", reference)
			}
			if err := c.push(ctx, opener, reference); err != nil {
				return err
			}
		}
	}
	return nil
}

// push pushes one image of an archive.
func (c *Cluster) push(ctx context.Context, opener tarball.Opener, reference string) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return err
	}
	pushed, err := tarball.Image(opener, &tag)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "pushing %s\n", reference)
	if err := remote.Write(tag, pushed, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w; \"docker login\" or \"podman login\" stores credentials for a registry", reference, err)
	}
	return nil
}
