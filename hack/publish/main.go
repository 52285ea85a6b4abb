// Command publish publishes what "make release" has written, and says what it is and where
// it comes from:
//
//	publish -cosign=PROGRAM dist/v0.2.0    what the workflow for releases runs
//	publish -rehearse dist/v0.2.0          "make release REHEARSE=1": into a registry that
//	                                       ends with it, signed by a key that is made for that
//
// Images and the chart are pushed with their tags. Each has a signature and its provenance,
// and each architecture of an image what its programs were linked from, as referrers. A tag
// that is published as another image stays, and is an error.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/clusterregistry/operator/hack/attest"
	"github.com/clusterregistry/operator/hack/git"
)

const (
	source = "https://github.com/clusterregistry/operator"
	// hubFile is what Artifact Hub reads, at the top of the repository.
	hubFile = "artifacthub-repo.yml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := flag.String("cosign", "", "the program cosign, which signs as the workflow that runs it")
	rehearse := flag.Bool("rehearse", false, "publish into a registry that ends with this program, signed by a key that is made for that, and verify it")
	flag.Parse()
	if err := run(ctx, flag.Arg(0), *program, *rehearse); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, program string, rehearsed bool) error {
	if dir == "" || rehearsed == (program != "") {
		return errors.New("usage: publish -cosign=PROGRAM DIRECTORY, or publish -rehearse DIRECTORY")
	}
	hub, err := os.ReadFile(hubFile)
	if err != nil {
		return err
	}
	commit, err := git.Run(ctx, ".", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	build := builtBy(filepath.Base(dir), commit, os.Getenv)
	if rehearsed {
		return rehearse(ctx, dir, build, hub)
	}
	r, err := readRelease(dir, "")
	if err != nil {
		return err
	}
	build.Repository = r.repository
	_, err = publish(ctx, r, cosign{program: program, dir: r.scratch}, build, hub)
	return errors.Join(err, r.close())
}

// builtBy returns who makes a release: the workflow that this runs in, or someone by hand.
func builtBy(version, commit string, getenv func(string) string) attest.Build {
	build := attest.Build{Source: source, Ref: "refs/tags/" + version, Commit: commit, Version: version, Go: runtime.Version(), Builder: attest.BuildType}
	if server := getenv("GITHUB_SERVER_URL"); server != "" {
		build.Source, build.Ref = server+"/"+getenv("GITHUB_REPOSITORY"), getenv("GITHUB_REF")
		build.Builder = server + "/" + getenv("GITHUB_WORKFLOW_REF")
		build.Invocation = build.Source + "/actions/runs/" + getenv("GITHUB_RUN_ID") + "/attempts/" + getenv("GITHUB_RUN_ATTEMPT")
	}
	return build
}

// rehearse publishes a release where no one gets it from, and verifies what is there. The
// public key stays beside the sums, so that their signature can be verified with openssl.
func rehearse(ctx context.Context, dir string, build attest.Build, hub []byte) (err error) {
	blobs, err := os.MkdirTemp("", "registry-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(blobs)) }()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true), registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs))))
	defer server.Close()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	r, err := readRelease(dir, strings.TrimPrefix(server.URL, "http://")+"/clusterregistry")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	build.Repository = r.repository
	chart, err := publish(ctx, r, keySigner{key}, build, hub)
	if err != nil {
		return err
	}
	public, err := attest.PublicPEM(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "rehearsal.pub"), public, 0o644); err != nil {
		return err
	}
	if err := r.verify(ctx, &key.PublicKey, chart, build); err != nil {
		return err
	}
	fmt.Printf("%s can be published: its %d images and its chart are as they were pushed, and all that is said of them is signed\n", dir, len(r.images))
	return nil
}
