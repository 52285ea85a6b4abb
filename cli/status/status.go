// Package status shows registries and clusters: the commands status and clusters.
package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

type shower struct {
	env    *command.Env
	name   string
	watch  bool
	output command.Output
	// known are the clusters.
	known listed
}

// New returns the command status.
func New(env *command.Env) *cobra.Command {
	s := &shower{env: env}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show how registries and their clusters are",
		Long: `Show how the ClusterRegistries of the host cluster and the clusters in the registry are: what
needs attention first, with the next step, then one line for each registry and for each cluster that
is not well. With the NAME of a ClusterRegistry, also its certificates and etcd members.

Exits with 4 when something needs attention.`,
		Example: `  # All registries of the host cluster, and the clusters in the aggregated one
  kubectl registry status

  # One registry in detail, again whenever something changes
  kubectl registry status fleet -w

  # For a program
  kubectl registry status -o json`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				s.name = args[0]
			}
			if err := s.output.Validate(); err != nil {
				return err
			}
			if s.watch && s.output != "" {
				return command.Usagef("--watch is for people: leave out --output, or watch with \"kubectl get creg,crc -w -o %s\"", s.output)
			}
			if s.watch {
				return s.follow(cmd.Context())
			}
			return s.show(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&s.watch, "watch", "w", false, "show it again whenever it changes, until interrupted")
	s.output.AddFlag(cmd)
	return cmd
}

// show shows the report once.
func (s *shower) show(ctx context.Context) error {
	report, err := s.read(ctx)
	if err != nil {
		return err
	}
	if s.output != "" {
		err = s.output.Print(s.env.Out, report)
	} else {
		err = report.print(s.env.Out, s.name != "")
	}
	if err == nil && len(report.Problems) > 0 {
		// For people, the verdict is the first line already.
		if err = command.Shown(report.Verdict); s.output != "" {
			err = command.Attentionf("%s", report.Verdict)
		}
	}
	return err
}

// read asks the host cluster and the registry.
func (s *shower) read(ctx context.Context) (*Report, error) {
	stop := s.env.Progress(ctx, "Asking the host cluster and the registry")
	defer stop()
	report := &Report{now: s.env.Now()}
	if err := s.readRegistries(ctx, report); err != nil {
		return nil, err
	}
	registry, err := s.env.Registry()
	if err != nil {
		return nil, err
	}
	clusters, err := s.known.read(ctx, registry.ClusterregistryV1beta1().Clusters())
	switch {
	case err == nil:
		report.Clusters = &Count{}
		slices.SortFunc(clusters, func(a, b *v1beta1.Cluster) int { return strings.Compare(a.Name, b.Name) })
		for _, cluster := range clusters {
			report.addCluster(cluster)
		}
	case len(report.Registries) > 0:
		// The host cluster was asked: what is known of its registries is shown, and why
		// the clusters are not. A host cluster may have independent registries only.
		report.noClusters(err, s.env.Explain("list the clusters", command.OfRegistry, err))
	default:
		return nil, s.env.Explain("list the clusters", command.OfRegistry, err)
	}
	report.conclude()
	return report, nil
}

// readRegistries adds what the context has of ClusterRegistries. An independent
// registry has none.
func (s *shower) readRegistries(ctx context.Context, report *Report) error {
	host, err := s.env.Host()
	if err != nil {
		return err
	}
	all, version, err := hostcluster.List(ctx, host, s.env.Namespace())
	note := hostcluster.Unlisted(err, s.env.Namespace())
	switch {
	case err != nil && (s.name != "" || note == ""):
		return s.env.Explain("list the ClusterRegistries", command.OfHost, err)
	case err != nil:
		report.note(note)
	}
	report.registries = version
	if s.name != "" {
		one, err := hostcluster.Pick(s.env, all, s.name)
		if err != nil {
			return err
		}
		report.addRegistry(one)
		return nil
	}
	for i := range all {
		report.addRegistry(&all[i])
	}
	return nil
}

const (
	// quiet is how long changes are gathered before they are shown.
	quiet = 500 * time.Millisecond
	// again is when a watch that could not be opened is tried again.
	again = 5 * time.Second
)

// follow shows the report whenever its text changes, until the context ends.
func (s *shower) follow(ctx context.Context) error {
	shown := ""
	for ctx.Err() == nil {
		out := &bytes.Buffer{}
		report, err := s.read(ctx)
		if err == nil {
			err = report.print(out, s.name != "")
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			report = &Report{}
			fmt.Fprintln(out, command.Plain(err.Error()))
		}
		if text := out.String(); text != shown {
			if _, err := fmt.Fprintf(s.env.Out, "--- %s\n%s", s.env.Now().Format(time.DateTime), text); err != nil {
				return err
			}
			shown = text
		}
		s.waitForChange(ctx, report)
	}
	return nil //nolint:nilerr // an error was shown, and asked again until interrupted
}

// waitForChange returns a moment after something has changed since a report, or when it is
// time to ask again because that can't be told. What happens to clusters meanwhile is known
// then, without another list.
func (s *shower) waitForChange(ctx context.Context, report *Report) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	changed := make(chan struct{}, 2)
	follow := func(w watch.Interface, err error, take func(watch.Event)) {
		if err != nil {
			sleep(ctx, again)
			changed <- struct{}{}
			return
		}
		defer w.Stop()
		var once sync.Once
		defer once.Do(func() { changed <- struct{}{} })
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-w.ResultChan():
				if !open {
					return
				}
				take(event)
				once.Do(func() { changed <- struct{}{} })
			}
		}
	}
	group.Go(func() {
		w, err := s.watchClusters(ctx, s.known.from())
		if err != nil && ctx.Err() == nil {
			s.known.forget()
		}
		follow(w, err, s.known.take)
	})
	group.Go(func() {
		w, err := s.watchRegistries(ctx, report.registries)
		follow(w, err, func(watch.Event) {})
	})
	<-changed // either ends with the context
	sleep(ctx, quiet)
}

var errNoVersion = errors.New("there is no version to watch from")

func (s *shower) watchClusters(ctx context.Context, version string) (watch.Interface, error) {
	registry, err := s.env.Registry()
	if err == nil && version == "" {
		err = errNoVersion
	}
	if err != nil {
		return nil, err
	}
	return registry.ClusterregistryV1beta1().Clusters().Watch(ctx, metav1.ListOptions{ResourceVersion: version})
}

func (s *shower) watchRegistries(ctx context.Context, version string) (watch.Interface, error) {
	host, err := s.env.Host()
	if err == nil && version == "" {
		err = errNoVersion
	}
	if err != nil {
		return nil, err
	}
	return host.Resource(hostcluster.Resource).Namespace(s.env.Namespace()).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
}

// sleep returns after a time, or when the context ends.
func sleep(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
