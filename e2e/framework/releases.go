package framework

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework/needs"
	"github.com/clusterregistry/operator/operator/version"
)

// Needs returns what the tests of the running package may run.
func Needs(t *testing.T) needs.Needs {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Rel(Root(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	n, err := needs.Of(releases, filepath.ToSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// CheckRelease returns an error when the tests of a package do not say that they run a
// release: its images may not be on the nodes.
func CheckRelease(n needs.Needs, release string) error {
	releases, err := version.Releases()
	if err != nil {
		return err
	}
	// What is not a release, the operator refuses.
	if n.Has(release) || !slices.ContainsFunc(releases, func(r version.Release) bool { return r.Version == release }) {
		return nil
	}
	return fmt.Errorf("this test runs %s, and the tests of its package say that they run %q, so that nothing else has to be built: add it to e2e/framework/needs/needs.yaml", release, n)
}

// checkBuilt returns which images are missing among those that were built last, of
// those that a package's tests run.
func checkBuilt(n needs.Needs, built []Image) error {
	for _, want := range n.Images() {
		if !slices.ContainsFunc(built, func(b Image) bool { return b.Name == want.Name && b.Tag == want.Tag }) {
			return fmt.Errorf("this test needs the image %s:%s, which was not among those that were built and loaded last: \"make e2e PACKAGES=...\" with the package's name does that", want.Name, want.Tag)
		}
	}
	return nil
}

// held returns a client whose writes of ClusterRegistries fail when the release that
// they ask for is not one that the package's tests may run. A test would wait for its
// images for ever.
func held(c client.WithWatch, n needs.Needs) client.WithWatch {
	check := func(object client.Object) error {
		if registry, is := object.(*operatorv1alpha1.ClusterRegistry); is {
			return CheckRelease(n, string(registry.Spec.Version))
		}
		return nil
	}
	// What the API refuses is not run, so it is asked first.
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := c.Create(ctx, object, options...); err != nil {
				return err
			}
			return check(object)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if err := c.Update(ctx, object, options...); err != nil {
				return err
			}
			return check(object)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.Patch(ctx, object, patch, options...); err != nil {
				return err
			}
			return check(object)
		},
	})
}
