// Command install brings the operator to the cluster of $KUBECONFIG and removes
// it again: "make install" and "make uninstall". IMAGE_REPOSITORY says where the
// cluster gets the images from; the default is where "make images" put them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterregistry/operator/hack/cluster/access"
	"github.com/clusterregistry/operator/hack/image"
	"github.com/clusterregistry/operator/hack/install/render"
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
	if len(args) != 1 || args[0] != "up" && args[0] != "down" {
		return errors.New("usage: install up, or install down")
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
	built, err := image.Find(image.List, "clusterregistry-operator")
	if err != nil {
		return err
	}
	wanted := render.NewImage(built, os.Getenv("IMAGE_REPOSITORY"))
	objects, err := render.Objects(render.Base, wanted)
	if err != nil {
		return err
	}
	fmt.Printf("installing the operator %s into the cluster at %s\n", wanted.Reference, config.Host)
	return up(ctx, c, os.Stdout, objects)
}
