// Command install brings the operator to the cluster of $KUBECONFIG and removes
// it again: "make install" and "make uninstall". It also writes what it would
// install into a file for kubectl: "make dist". IMAGE_REPOSITORY says where the
// cluster gets the images from; the default is where "make images" put them.
// DOWNGRADE=1 lets an older definition of the operator's API replace a newer one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterregistry/operator/hack/access"
	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/hack/product"
)

// patience bounds either way.
const patience = 5 * time.Minute

func main() {
	logf.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "write":
		return write(args[1])
	case len(args) != 1 || args[0] != "up" && args[0] != "down":
		return errors.New("usage: install up, install down, or install write FILE")
	}
	c, config, err := access.New()
	if err != nil {
		return err
	}
	if args[0] == "down" {
		objects, err := render.Published(render.Base)
		if err != nil {
			return err
		}
		fmt.Printf("removing the operator from the cluster at %s\n", config.Host)
		return down(ctx, c, os.Stdout, objects)
	}
	objects, wanted, err := wanted()
	if err != nil {
		return err
	}
	fmt.Printf("installing the operator %s into the cluster at %s\n", wanted.Reference, config.Host)
	return up(ctx, c, os.Stdout, objects, os.Getenv(downgradeVariable) != "")
}

// wanted returns what to install: the operator of the images built last.
func wanted() ([]*unstructured.Unstructured, render.Image, error) {
	built, err := product.FindImage(product.ImageList, "clusterregistry-operator")
	if err != nil {
		return nil, render.Image{}, err
	}
	i := render.NewImage(built, os.Getenv("IMAGE_REPOSITORY"))
	objects, err := render.Objects(render.Base, i)
	return objects, i, err
}

// write writes what to install into a file, whose folder it makes.
func write(path string) error {
	objects, i, err := wanted()
	if err != nil {
		return err
	}
	content, err := render.YAML(objects)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	fmt.Printf("%s installs %s\n", path, i.Reference)
	return nil
}
