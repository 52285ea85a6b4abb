// Package recovery plans how a registry continues whose etcd has lost its quorum: the command
// recover plan. What is refused is what operator/restore says, by which the operator decides as
// well. Which copy of the data it is to be is a person's decision: the plan says what there is,
// what each copy lacks, and what to set, and changes nothing.
package recovery

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/version"
)

// New returns the command recover with those below it.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Plan how a registry recovers from a lost quorum of etcd",
		Args:  command.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewPlan(env))
	return cmd
}

type planner struct {
	env      *command.Env
	output   command.Output
	releases func() ([]version.Release, error)
}

// NewPlan returns the command recover plan.
func NewPlan(env *command.Env) *cobra.Command {
	p := &planner{env: env, releases: version.Releases}
	return p.command()
}

func (p *planner) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [REGISTRY]",
		Short: "Show which copies of the data are left, and what each would lose",
		Long: `Show of a registry whose etcd has lost its quorum for good what is in the way of a recovery, which
copies of the data are left (those of members, and backups), what each of them would lose, which one
loses the least, and for each the command that has the operator continue with it. While a recovery is
under way, show how far it is and what it waits for. Nothing is changed: which copy it is to be is a
person's decision.

Exits with 4 while etcd has lost its quorum, is being recovered or is not ready, and with 3 where the
operator has nothing to decide: an external etcd that did not go back.`,
		Example: `  # What is left, and what to run
  kubectl registry recover plan fleet

  # For a program
  kubectl registry recover plan fleet -n registries -o json`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(p.env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	p.output.AddFlag(cmd)
	return cmd
}

func (p *planner) run(ctx context.Context, name string) error {
	if err := p.output.Validate(); err != nil {
		return err
	}
	releases, err := p.releases()
	if err != nil {
		return err
	}
	registry, err := hostcluster.Find(ctx, p.env, name)
	if err != nil {
		return err
	}
	if registry.Spec.Etcd.External != nil && registry.Status.Recovery == nil {
		return command.Refusedf("the etcd of %s is external, and is for those who run it: the operator recovers nothing of it", key(registry))
	}
	s, err := p.observe(ctx, registry)
	if err != nil {
		return err
	}
	s.releases = version.WithMembers(releases, "", registry.Status.EtcdVersion)
	plan := s.plan()
	if p.output != "" {
		err = p.output.Print(p.env.Out, plan)
	} else {
		err = plan.print(p.env.Out, p.env.Now())
	}
	if err == nil && plan.Attention {
		return command.Shown(fmt.Sprintf("%s: %s", key(registry), plan.Verdict))
	}
	return err
}
