// Package version is the command version: which plugin this is, and whether it knows what the
// registries of the host cluster run.
package version

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	releases "github.com/clusterregistry/operator/operator/version"
)

// Report is what version shows.
type Report struct {
	Plugin Plugin `json:"plugin"`
	// Registries are the ClusterRegistries that the context has.
	Registries []Registry `json:"registries,omitempty"`
	// Notes say what could not be asked.
	Notes []string `json:"notes,omitempty"`
}

// Plugin is this program.
type Plugin struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Platform string `json:"platform"`
	// Releases are those of the registry that it knows, the oldest first.
	Releases []string `json:"releases"`
}

// Registry is what a ClusterRegistry runs.
type Registry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Desired is spec.version; the others are what runs.
	Desired     string `json:"desired,omitempty"`
	Version     string `json:"version,omitempty"`
	Etcd        string `json:"etcd,omitempty"`
	HostCluster string `json:"hostCluster,omitempty"`
	// Unknown are the releases among them that the plugin does not know.
	Unknown []string `json:"unknown,omitempty"`
}

type asker struct {
	env    *command.Env
	info   version.Info
	client bool
	output command.Output
}

// New returns the command version of a plugin that was built so.
func New(env *command.Env, info version.Info) *cobra.Command {
	a := &asker{env: env, info: info}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the plugin and of the registries",
		Long: `Show the version of this plugin, which releases of the registry it knows, and what each
ClusterRegistry of the host cluster runs.

A plugin that is older than the operator does not know its newest releases: it can't plan an upgrade
to them, and may not show everything. Exits with 4 when a ClusterRegistry has such a release.`,
		Example: `  # The plugin and the registries of the host cluster
  kubectl registry version

  # The plugin alone, without asking a cluster
  kubectl registry version --client`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&a.client, "client", false, "show the plugin only, and ask no cluster")
	a.output.AddFlag(cmd)
	return cmd
}

func (a *asker) run(ctx context.Context) error {
	if err := a.output.Validate(); err != nil {
		return err
	}
	known, err := releases.Releases()
	if err != nil {
		return err
	}
	report := &Report{Plugin: Plugin{Version: a.info.GitVersion, Commit: a.info.GitCommit, Platform: a.info.Platform}}
	for _, release := range known {
		report.Plugin.Releases = append(report.Plugin.Releases, release.Version)
	}
	var unread error
	if !a.client {
		unread = a.readRegistries(ctx, report)
	}
	// Which plugin this is matters most where the registries can't be read.
	if a.output != "" {
		if unread != nil {
			report.Notes = append(report.Notes, command.Plain(unread.Error()))
		}
		err = a.output.Print(a.env.Out, report)
	} else {
		a.print(report)
	}
	if unread != nil || err != nil {
		return errors.Join(unread, err)
	}
	for _, r := range report.Registries {
		if len(r.Unknown) > 0 {
			return command.Attentionf("ClusterRegistry %s/%s has release %s, which this plugin does not know: use the plugin of the operator's release", r.Namespace, r.Name, r.Unknown[0])
		}
	}
	return nil
}

// readRegistries adds what the context has of ClusterRegistries.
func (a *asker) readRegistries(ctx context.Context, report *Report) error {
	host, err := a.env.Host()
	if err != nil {
		return err
	}
	stop := a.env.Progress(ctx, "Asking the host cluster")
	all, _, err := hostcluster.List(ctx, host, a.env.Namespace())
	stop()
	if note := hostcluster.Unlisted(err, a.env.Namespace()); note != "" {
		report.Notes = append(report.Notes, note)
	} else if err != nil {
		return a.env.Explain("list the ClusterRegistries", command.OfHost, err)
	}
	for i := range all {
		report.Registries = append(report.Registries, registryOf(&all[i], report.Plugin.Releases))
	}
	return nil
}

// registryOf returns what a ClusterRegistry runs.
func registryOf(creg *operatorv1alpha1.ClusterRegistry, known []string) Registry {
	s, desired := &creg.Status, string(creg.Spec.Version)
	out := Registry{Namespace: creg.Namespace, Name: creg.Name, Desired: desired, Version: s.Version, Etcd: s.EtcdVersion, HostCluster: s.HostVersion}
	for _, release := range []string{s.Version, desired} {
		if release != "" && !slices.Contains(known, release) && !slices.Contains(out.Unknown, release) {
			out.Unknown = append(out.Unknown, release)
		}
	}
	return out
}

func (a *asker) print(report *Report) {
	p := report.Plugin
	fmt.Fprintf(a.env.Out, "Plugin: %s (commit %s, %s)\nReleases that it knows: %s to %s\n", p.Version, p.Commit, p.Platform, p.Releases[0], p.Releases[len(p.Releases)-1])
	if len(report.Registries) > 0 {
		rows := [][]string{{"NAMESPACE", "REGISTRY", "VERSION", "DESIRED", "ETCD", "HOST CLUSTER", "KNOWN TO THE PLUGIN"}}
		for _, r := range report.Registries {
			is := "yes"
			if len(r.Unknown) > 0 {
				is = "no"
			}
			rows = append(rows, []string{r.Namespace, r.Name, r.Version, r.Desired, r.Etcd, r.HostCluster, is})
		}
		fmt.Fprintln(a.env.Out)
		command.Table(a.env.Out, rows)
	}
	for _, note := range report.Notes {
		fmt.Fprintln(a.env.ErrOut, "note: "+note)
	}
}
