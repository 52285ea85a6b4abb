// Command site serves the page of "kubectl registry ui" with a fleet that is made up: for the
// tests in a browser, and to look at a change of the page without a cluster. It is the command
// itself that serves the page; the API server that it asks is made up too.
//
// Each line of the standard input is a change in JSON; "done" is printed when it is made:
//
//	{"put": [OBJECT...]}      create or replace Clusters, ClusterRegistries, ClusterRegistryBackups
//	{"remove": ["NAME"...]}   delete these Clusters
//	{"away": true}            the API server refuses what it is asked, until {"away": false}
//
// It ends when the input does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/ui"
)

func main() {
	clusters := flag.Int("clusters", 10, "how many clusters there are")
	port := flag.String("port", "0", "the port of the page; 0 is any that is free")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *clusters, *port); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run serves the page until the context or the input ends.
func run(ctx context.Context, clusters int, port string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	objects, err := fleet(clusters, time.Now())
	if err != nil {
		return err
	}
	api := newAPIServer()
	api.put(objects)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	dir, err := os.MkdirTemp("", "kubectl-registry-ui-site-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, kubeconfigOf, listener.Addr()), 0o600); err != nil {
		return err
	}
	env := command.New()
	env.Flags.KubeConfig = &kubeconfig
	cmd := ui.New(env)
	cmd.SetArgs([]string{"--port", port})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	changed := make(chan error, 1)
	go func() {
		changed <- changes(api, os.Stdin, os.Stdout)
		cancel()
	}()
	if err := cmd.ExecuteContext(ctx); err != nil {
		return err
	}
	select {
	case err = <-changed:
	default: // a signal has ended it
	}
	return err
}

const kubeconfigOf = `apiVersion: v1
kind: Config
current-context: production
contexts: [{name: production, context: {cluster: hub, user: ""}}]
clusters: [{name: hub, cluster: {server: "http://%s"}}]
`

// change is a line of the input.
type change struct {
	Put    []object `json:"put"`
	Remove []string `json:"remove"`
	Away   *bool    `json:"away"`
}

// changes makes the changes that are asked for.
func changes(api *apiServer, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a change: %w", err)
		}
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("read a change: %w", err)
		}
		api.put(c.Put)
		api.remove(c.Remove)
		if c.Away != nil {
			api.leave(*c.Away)
		}
		fmt.Fprintln(out, "done")
	}
}
