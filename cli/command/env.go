// Package command has what all commands of kubectl-registry share: how they reach
// the registry and its host cluster, what they print, ask and exit with.
package command

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// FieldManager is the name under which this program writes.
const FieldManager = "kubectl-registry"

// Env is what a command runs in.
type Env struct {
	genericiooptions.IOStreams
	// Flags say which kubeconfig and context the registry has. An aggregated registry
	// is reached through the context of its host cluster.
	Flags *genericclioptions.ConfigFlags
	// Registry returns a client of the registry.
	Registry func() (versioned.Interface, error)
	// Host returns a client of the host cluster, where ClusterRegistries are.
	Host func() (dynamic.Interface, error)
	// Kubernetes returns a client of the host cluster's own API.
	Kubernetes func() (kubernetes.Interface, error)
	// Terminal reports whether a person can be asked.
	Terminal func() bool
	// Now is the time.
	Now func() time.Time
}

// New returns the environment of this process.
func New() *Env {
	flags := genericclioptions.NewConfigFlags(true)
	// What stays are the flags that a person needs to name a registry and themselves.
	// The others override parts of a context, and --token would be in the shell's
	// history.
	flags.CacheDir, flags.CertFile, flags.KeyFile, flags.BearerToken = nil, nil, nil, nil
	flags.ClusterName, flags.AuthInfoName, flags.APIServer, flags.TLSServerName = nil, nil, nil, nil
	flags.Insecure, flags.CAFile, flags.DisableCompression, flags.ProxyURL = nil, nil, nil, nil
	flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil
	env := &Env{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Flags:     flags,
		Terminal:  func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
		Now:       time.Now,
	}
	env.Registry = func() (versioned.Interface, error) {
		config, err := env.config()
		if err != nil {
			return nil, err
		}
		return versioned.NewForConfig(config)
	}
	env.Host = func() (dynamic.Interface, error) {
		config, err := env.config()
		if err != nil {
			return nil, err
		}
		return dynamic.NewForConfig(config)
	}
	env.Kubernetes = func() (kubernetes.Interface, error) {
		config, err := env.config()
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(config)
	}
	return env
}

func (e *Env) config() (*rest.Config, error) {
	config, err := e.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the registry's kubeconfig: %w; name a file with --kubeconfig and a context with --context", err)
	}
	if err := ApplyPluginPolicy(config); err != nil {
		return nil, err
	}
	config.QPS = -1 // servers of today say themselves when a client is to wait
	config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// Context returns the name of the registry's context, for messages.
func (e *Env) Context() string {
	if e.Flags.Context != nil && *e.Flags.Context != "" {
		return *e.Flags.Context
	}
	raw, err := e.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil || raw.CurrentContext == "" {
		return "the current context"
	}
	return raw.CurrentContext
}

// Kubeconfig returns where another cluster's context is looked for: in a file of its
// own, or in that of --kubeconfig, so that one command line doesn't mean contexts of
// two kubeconfigs. It is empty for the default files.
func (e *Env) Kubeconfig(own string) string {
	if own == "" && e.Flags.KubeConfig != nil {
		return *e.Flags.KubeConfig
	}
	return own
}

// Confirm asks a question and returns nil when the answer is yes. Where no one can
// be asked it refuses, and says which flag answers. A context that ends, as by Ctrl-C,
// is a no, whatever was typed.
func (e *Env) Confirm(ctx context.Context, question, flag string) error {
	if !e.Terminal() {
		return Refusedf("%s This needs a confirmation, and the standard input is not a terminal: check what is shown, then use %s", question, flag)
	}
	fmt.Fprintf(e.ErrOut, "%s [y/N] ", question)
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	// A read from a terminal can't be interrupted: it ends with the process.
	go func() {
		line, err := bufio.NewReader(e.In).ReadString('\n')
		answered <- answer{strings.ToLower(strings.TrimSpace(line)), err}
	}()
	given := answer{}
	select {
	case <-ctx.Done():
	case given = <-answered:
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(e.ErrOut)
		return Refusedf("interrupted: nothing was changed")
	case given.line == "y" || given.line == "yes":
		return nil
	case given.err != nil && given.line == "":
		return Refusedf("no answer: nothing was changed")
	}
	return Refusedf("not confirmed: nothing was changed")
}

// progressAfter is how long a step may take before it is named.
const progressAfter = 2 * time.Second

// Progress names a step on the standard error when it takes long. The function that
// it returns ends it.
func (e *Env) Progress(ctx context.Context, step string) func() {
	return e.names(ctx, 0, func() string { return step })
}

// countEvery is how often Counter says how many are done.
const countEvery = 5 * time.Second

// Counter is Progress for a step of many parts: it says again and again how many are done.
func (e *Env) Counter(ctx context.Context, step string, done func() int, all int) func() {
	return e.names(ctx, countEvery, func() string { return fmt.Sprintf("%s: %d of %d", step, done(), all) })
}

// names names a step that takes long, and again each time that so much has passed, or once for zero.
func (e *Env) names(ctx context.Context, again time.Duration, step func() string) func() {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait := progressAfter; wait > 0; wait = again {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
				fmt.Fprintf(e.ErrOut, "%s ...\n", step())
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// Namespace returns the one of --namespace, empty for all.
func (e *Env) Namespace() string {
	if e.Flags.Namespace == nil {
		return ""
	}
	return *e.Flags.Namespace
}
