// Package restore plans how a backup is restored into a new registry: the command restore plan.
// What is refused is what operator/restore says, by which the operator decides as well. No
// command reaches a store: what only the store knows is said to be unknown.
package restore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/version"
)

// New returns the command restore with those below it.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Plan the restore of a backup",
		Args:  command.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewPlan(env))
	return cmd
}

type planner struct {
	env *command.Env
	// registry, name, latest and before name a backup in a registry's store, byStore one
	// that has a ClusterRegistryBackup.
	registry, name, before string
	latest, byStore        bool
	into, version          string
	output                 command.Output
	releases               func() ([]version.Release, error)
}

// NewPlan returns the command restore plan.
func NewPlan(env *command.Env) *cobra.Command {
	p := &planner{env: env, releases: version.Releases}
	return p.command()
}

func (p *planner) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [BACKUP]",
		Short: "Show what a restore would bring back, lose and need",
		Long: `Show from which backup a new registry would begin, how old the data is, what would be lost, what has
to be there first, and what can't be known from here. Nothing is changed, and no store is reached.

It prints the manifest of a ClusterRegistry with spec.restoreFrom, with all else as comments: read
it, and kubectl apply it. The backup is a ClusterRegistryBackup, or one in the store of a registry:
its newest one (--latest), the newest one from before a time (--before), or one by its name (--name).

Exits with 3 when the operator would refuse the restore, and with 4 when something is amiss or unknown
that decides whether it succeeds, such as a backup that was never verified.`,
		Example: `  # Rehearse it, beside the registry that was saved
  kubectl registry restore plan fleet-20261123-1100 --into rehearsal/fleet

  # As it was before an accident
  kubectl registry restore plan --registry fleet --before 2026-11-23T10:00:00Z

  # For another host cluster, or to keep for the day when the registry is gone
  kubectl registry restore plan --registry fleet --latest --into fleet > restore.yaml`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: backup.Complete(p.env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.registry, "registry", "", "the `ClusterRegistry` in whose store the backup is, with --latest, --before or --name")
	flags.BoolVar(&p.latest, "latest", false, "the newest backup of --registry that is not known to be damaged")
	flags.StringVar(&p.before, "before", "", "the newest backup of --registry that was taken no later than this `time`, such as 2026-11-23T10:00:00Z")
	flags.StringVar(&p.name, "name", "", "the `backup` of --registry that has this name in its store")
	flags.BoolVar(&p.byStore, "by-store", false, "have the manifest name store, lineage and name, which needs no ClusterRegistryBackup: for another host cluster")
	flags.StringVar(&p.into, "into", "", "`[NAMESPACE/]NAME` of the new ClusterRegistry (default: the name of the saved one with -restored, in its namespace)")
	flags.StringVar(&p.version, "version", "", "the `release` of the new registry (default: that of the backup)")
	p.output.AddFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("registry", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return hostcluster.Complete(p.env)(cmd, nil, begun)
	})
	return cmd
}

func (p *planner) run(ctx context.Context, object string) error {
	if err := p.output.Validate(); err != nil {
		return err
	}
	before, err := p.validate(object)
	if err != nil {
		return err
	}
	releases, err := p.releases()
	if err != nil {
		return err
	}
	found, err := p.choose(ctx, object, before)
	if err != nil {
		return err
	}
	plan, err := found.plan(releases, p.version, p.env.Now())
	if err != nil {
		return command.Refusedf("%w", err)
	}
	if p.output != "" {
		err = p.output.Print(p.env.Out, plan)
	} else {
		err = plan.print(p.env.Out)
	}
	if err == nil && plan.Attention {
		return command.Shown(plan.Verdict)
	}
	return err
}

// validate returns the time of --before, nil without one, or what is wrong with the command
// line.
func (p *planner) validate(object string) (*metav1.Time, error) {
	ways := 0
	for _, set := range []bool{p.latest, p.before != "", p.name != ""} {
		if set {
			ways++
		}
	}
	switch {
	case object == "" && p.registry == "":
		return nil, command.Usagef("say which backup: name a ClusterRegistryBackup, or a registry with --registry and --latest, --before or --name; \"kubectl registry backup list\" shows what there is")
	case object != "" && (p.registry != "" || ways > 0):
		return nil, command.Usagef("name either a ClusterRegistryBackup, or a registry with --registry and --latest, --before or --name")
	case object == "" && ways != 1:
		return nil, command.Usagef("with --registry, use exactly one of --latest, --before and --name")
	case strings.Count(p.into, "/") > 1 || strings.HasPrefix(p.into, "/") || strings.HasSuffix(p.into, "/"):
		return nil, command.Usagef("--into=%s: write NAME or NAMESPACE/NAME", command.Plain(p.into))
	case p.before == "":
		return nil, nil //nolint:nilnil // there is none
	}
	at, err := time.Parse(time.RFC3339, p.before)
	if err != nil {
		return nil, command.Usagef("--before=%s: write a time such as 2026-11-23T10:00:00Z", command.Plain(p.before))
	}
	return &metav1.Time{Time: at}, nil
}

// target returns the namespace and the name of the new registry.
func (p *planner) target(namespace, registry string) (string, string) {
	if p.into == "" {
		return namespace, registry + "-restored"
	}
	if before, name, both := strings.Cut(p.into, "/"); both {
		return before, name
	}
	return namespace, p.into
}

// key names an object.
func key(namespace, name string) string { return fmt.Sprintf("%s/%s", namespace, name) }
