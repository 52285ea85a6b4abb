// Command dist makes all that a release of this project is published as, in a
// folder dist/VERSION: "make release". The same commit, made with the same Go
// on any Linux machine, gives the same bytes.
//
// With -record it makes just the images of the registry's releases that are not
// released yet, and records their digests in operator/version/releases.yaml:
// "make digests".
//
// IMAGE_REPOSITORY is the registry and path before each image's name; the
// default is the one that manifests/operator names.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/hack/product"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rehearse := flag.Bool("rehearse", false, "make it although something is missing for a release, and say what")
	out := flag.String("out", "dist", "the folder in which a folder of the version's name is made")
	before := flag.String("published", "", "the folder of a release before this one, whose images are taken over")
	record := flag.Bool("record", false, "record the digests of images of releases that are not released, and make nothing else")
	flag.Parse()
	do := func() error { return run(ctx, flag.Arg(0), *out, *before, *rehearse) }
	if *record {
		do = func() error { return recordDigests(ctx, *before) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, out, before string, rehearse bool) error {
	if err := wellFormed(version); err != nil {
		return err
	}
	named, err := render.PublishedImage(render.Base)
	if err != nil {
		return err
	}
	if err := releasable(ctx, ".", version, named); err != nil {
		if !rehearse {
			return err
		}
		fmt.Printf("this is a rehearsal, because a release is not possible yet:\n%v\n", err)
	}
	place := filepath.Join(out, version)
	if _, err := os.Stat(place); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("%s exists; remove it to make the release anew, or choose another folder with -out", place))
	}
	stamp, err := product.ReadStamp(ctx, ".")
	if err != nil {
		return err
	}
	stamp.Version = version
	r := release{repository: cmp.Or(os.Getenv("IMAGE_REPOSITORY"), named.Repository), source: ".", rehearse: rehearse}
	if r.published, err = readPublished(before); err != nil {
		return err
	}
	if r.images, err = r.compile(ctx, stamp); err != nil {
		return err
	}
	if r.plugin, err = compilePlugin(ctx, ".", filepath.Join("bin", "dist", stamp.Version, "plugin"), stamp, product.Plugin()); err != nil {
		return err
	}
	if err := r.write(ctx, place, artefacts); err != nil {
		return err
	}
	fmt.Printf("the release is in %s; RELEASE.md says what to do with it\n", place)
	return nil
}

// recordDigests records digests in the table of the registry's releases. Before is
// the directory of a release before, or empty.
func recordDigests(ctx context.Context, before string) error {
	named, err := render.PublishedImage(render.Base)
	if err != nil {
		return err
	}
	r := release{repository: cmp.Or(os.Getenv("IMAGE_REPOSITORY"), named.Repository), source: "."}
	if r.published, err = readPublished(before); err != nil {
		return err
	}
	return r.record(ctx, "operator/version/releases.yaml")
}
