// Package ui is the command ui: a page on the loopback interface that shows the fleet and the
// registries, live and read-only.
//
// The command asks the registry and its host cluster with the credentials of the caller's
// kubeconfig, and gives the browser a view of what it is told: no request of the page is passed
// on, and no credential leaves the process. A page of another origin, or another user of the
// computer, gets nothing: see [guard].
package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/cli/command"
)

// loopback is the only address that the page is served at. There is no flag for another one:
// whoever reaches the port needs no more than the key in the URL.
const loopback = "127.0.0.1"

type site struct {
	env  *command.Env
	port uint16
	open bool
	// browse opens the page in a browser.
	browse func(ctx context.Context, url string) (func(), error)
}

// New returns the command ui.
func New(env *command.Env) *cobra.Command {
	p := &site{env: env, browse: browse}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the fleet and the registries in a browser",
		Long: `Show the clusters in the registry and the ClusterRegistries of the host cluster on a page for the
browser, which follows each change. It is read-only, and served on the loopback interface of this
computer until Ctrl-C.

The URL that is printed has a key, which is made for this run: anyone who has it sees what you may
see. The page asks nothing of any other server, and never gets your credentials.`,
		Example: `  # Print the page's URL, and serve it until Ctrl-C
  kubectl registry ui

  # Open it in the browser, always on the same port
  kubectl registry ui --open --port 8421`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	cmd.Flags().Uint16Var(&p.port, "port", 0, "the `port` on the loopback interface; 0 is any that is free")
	cmd.Flags().BoolVar(&p.open, "open", false, "open the page in the browser")
	return cmd
}

// run serves the page until the context ends.
func (p *site) run(ctx context.Context) error {
	registry, err := p.env.Registry()
	if err != nil {
		return err
	}
	host, err := p.env.Host()
	if err != nil {
		return err
	}
	listener, err := listen(ctx, p.port)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	feed := newFeed(p.env.Now)
	followed := follow(ctx, feed, sources(p.env, feed, registry, host))
	key := newKey()
	address := listener.Addr().(*net.TCPAddr)
	server := &http.Server{
		Handler: guarded(address.Port, key, &handler{
			feed: feed, clusters: registry.ClusterregistryV1beta1().Clusters(), explain: p.env.Explain, now: p.env.Now,
			about: About{Context: command.Plain(p.env.Context()), Namespace: p.env.Namespace()},
		}),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      patience, // of all but the stream, which extends it with each event
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	url := fmt.Sprintf("http://%s/#key=%s", address, key)
	fmt.Fprintf(p.env.Out, "%s\n", url)
	fmt.Fprintln(p.env.ErrOut, "This is the page of the registry of context "+command.Plain(p.env.Context())+". Its key is for you alone. Ctrl-C ends it.")
	if p.open {
		remove, err := p.browse(ctx, url)
		if err != nil {
			fmt.Fprintf(p.env.ErrOut, "note: no browser was opened: %s; open the URL yourself\n", command.Plain(err.Error()))
		}
		defer remove()
	}
	err = server.Serve(listener)
	cancel()
	followed()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the page at %s: %w", address, err)
}

// listen returns a listener on the loopback interface.
func listen(ctx context.Context, port uint16) (net.Listener, error) {
	address := net.JoinHostPort(loopback, strconv.Itoa(int(port)))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("serve the page at %s: %w; choose another port with --port, or leave it out for one that is free", address, err)
	}
	return listener, nil
}
