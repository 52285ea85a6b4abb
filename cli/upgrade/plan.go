package upgrade

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/version"
)

// New returns the command upgrade with those below it.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Plan and start upgrades of registries",
		Args:  command.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewPlan(env), NewTo(env))
	return cmd
}

type planner struct {
	env      *command.Env
	to       string
	output   command.Output
	releases func() ([]version.Release, error)
}

// NewPlan returns the command upgrade plan.
func NewPlan(env *command.Env) *cobra.Command {
	p := &planner{env: env, releases: version.Releases}
	return p.command()
}

func (p *planner) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [NAME]",
		Short: "Show which releases a registry can be brought to, and how",
		Long: `Show which releases a registry can be brought to, and what each step does, waits for and
interrupts. Nothing is changed. The releases are those that this plugin knows; the operator has to
know them too.`,
		Example: `  # To the newest release that can be reached
  kubectl registry upgrade plan fleet

  # To a certain one, for a program
  kubectl registry upgrade plan fleet --to v0.2.0 -o json`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(p.env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	cmd.Flags().StringVar(&p.to, "to", "", "the `version` to go to; default: the newest that can be reached")
	p.output.AddFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("to", completeVersions)
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
	plan, err := MakePlan(version.WithMembers(releases, "", registry.Status.EtcdVersion), registry, p.to)
	if err != nil {
		return command.Refusedf("%w", err)
	}
	if p.output != "" {
		return p.output.Print(p.env.Out, plan)
	}
	return plan.print(p.env.Out)
}

// completeVersions completes releases.
func completeVersions(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	releases, err := version.Releases()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, release := range releases {
		if strings.HasPrefix(release.Version, begun) {
			out = append(out, release.Version)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// print writes the plan for people.
func (p *Plan) print(w io.Writer) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "Registry %s/%s runs %s", p.Namespace, p.Name, p.Running)
	if p.Desired != p.Running {
		fmt.Fprintf(out, ", and its spec says %s", p.Desired)
	}
	out.WriteString(".\n")
	for _, hold := range p.Holds {
		fmt.Fprintf(out, "No upgrade begins now: %s\n", command.Plain(hold))
	}
	if len(p.Releases) == 0 {
		out.WriteString("This plugin knows no newer release.\n")
	}
	for _, target := range p.Releases {
		switch {
		case target.Problem != "":
			fmt.Fprintf(out, "  %s: no: %s\n", target.Version, target.Problem)
		case len(target.Path) == 1:
			fmt.Fprintf(out, "  %s: yes\n", target.Version)
		default:
			fmt.Fprintf(out, "  %s: by %s\n", target.Version, strings.Join(target.Path, ", then "))
		}
	}
	for i, step := range p.Steps {
		fmt.Fprintf(out, "\nStep %d: %s -> %s\n", i+1, step.From, step.To)
		for _, phase := range step.Phases {
			fmt.Fprintf(out, "  %s: %s.\n    Waits for %s.\n", phase.Name, phase.Does, phase.WaitsFor)
		}
		for _, interrupt := range step.Interrupts {
			fmt.Fprintf(out, "  Clients notice: %s.\n", interrupt)
		}
		if len(step.Interrupts) == 0 {
			out.WriteString("  Clients notice nothing.\n")
		}
		if step.Rollback {
			fmt.Fprintf(out, "  When the new servers fail, those of %s return.\n", step.From)
		}
	}
	if len(p.Steps) > 0 {
		fmt.Fprintf(out, "\nTo begin: kubectl registry upgrade to %s %s -n %s --wait\n", p.Steps[0].To, p.Name, p.Namespace)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
