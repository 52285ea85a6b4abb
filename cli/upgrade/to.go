package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/version"
)

type starter struct {
	env      *command.Env
	to       string
	name     string
	wait     bool
	timeout  time.Duration
	dryRun   command.DryRun
	output   command.Output
	releases func() ([]version.Release, error)
}

// NewTo returns the command upgrade to.
func NewTo(env *command.Env) *cobra.Command {
	s := &starter{env: env, releases: version.Releases}
	return s.command()
}

func (s *starter) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "to VERSION [NAME]",
		Short: "Bring a registry to another release",
		Long: `Bring a registry to another release, by its spec.version. What can't be is refused, as the operator
would refuse it. A return to the release that runs is always possible.

With --wait, exits with 1 when the upgrade was rolled back, is refused by the operator or takes
longer than --timeout; it then continues, and "status -w" shows it.`,
		Example: `  # See what it does first
  kubectl registry upgrade plan fleet
  kubectl registry upgrade to v0.2.0 fleet --wait`,
		Args: command.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return completeVersions(cmd, args, begun)
			}
			return hostcluster.Complete(s.env)(cmd, args[1:], begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s.to = args[0]
			if len(args) > 1 {
				s.name = args[1]
			}
			return s.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&s.wait, "wait", false, "wait until the release runs and the registry is Ready")
	cmd.Flags().DurationVar(&s.timeout, "timeout", time.Hour, "how long to wait")
	s.dryRun.AddFlag(cmd)
	s.output.AddFlag(cmd)
	return cmd
}

func (s *starter) run(ctx context.Context) error {
	if err := errors.Join(s.dryRun.Validate(), s.output.Validate()); err != nil {
		return err
	}
	registry, err := hostcluster.Find(ctx, s.env, s.name)
	if err != nil {
		return err
	}
	releases, err := s.releases()
	if err != nil {
		return err
	}
	if err := s.check(releases, registry); err != nil {
		return err
	}
	host, err := s.env.Host()
	if err != nil {
		return err
	}
	client := host.Resource(hostcluster.Resource).Namespace(registry.Namespace)
	fmt.Fprintf(s.env.ErrOut, "ClusterRegistry %s/%s in the host cluster of context %s: spec.version %s -> %s\n",
		registry.Namespace, registry.Name, command.Plain(s.env.Context()), registry.Spec.Version, command.Plain(s.to))
	did := "patched"
	if string(registry.Spec.Version) == s.to {
		did = "unchanged"
	} else if registry, err = s.patch(ctx, client, registry); err != nil {
		return err
	}
	var printed error
	if s.output != "" {
		registry.ManagedFields = nil
		registry.SetGroupVersionKind(hostcluster.Kind)
		printed = s.output.Print(s.env.Out, registry)
	} else {
		fmt.Fprintf(s.env.Out, "clusterregistry.operator.clusterregistry.io/%s %s%s\n", registry.Name, did, s.dryRun.Suffix())
	}
	if !s.wait || s.dryRun != "none" {
		return printed
	}
	// The upgrade has begun, whether it could be printed or not.
	return errors.Join(s.follow(ctx, client, registry), printed)
}

// check refuses what can't be, as a plan says it.
func (s *starter) check(releases []version.Release, registry *v1alpha1.ClusterRegistry) error {
	err := version.CheckUpgrade(releases, registry.Status.Version, s.to)
	switch {
	case errors.Is(err, version.ErrUnknown):
		// An operator of another release may know it: its API server decides.
		fmt.Fprintf(s.env.ErrOut, "note: this plugin can't check the upgrade: %s\n", command.Plain(err.Error()))
		return nil
	case err != nil:
		return command.Refusedf("%w", err)
	case s.to == registry.Status.Version:
		return nil
	}
	if err := reachable(releases, registry, Target{Version: s.to, Path: []string{s.to}}); err != nil {
		return command.Refusedf("%s can't be reached: %w", s.to, err)
	}
	return nil
}

// patch sets the version of a registry that no one has changed since it was read.
func (s *starter) patch(ctx context.Context, client dynamic.ResourceInterface, registry *v1alpha1.ClusterRegistry) (*v1alpha1.ClusterRegistry, error) {
	if s.dryRun.Client() {
		registry.Spec.Version = v1alpha1.Version(s.to)
		return registry, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": registry.ResourceVersion}, "spec": map[string]any{"version": s.to}})
	if err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
	}
	object, err := client.Patch(ctx, registry.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: command.FieldManager, DryRun: s.dryRun.Options()})
	if err != nil {
		return nil, s.env.Explain("set the version of "+registry.Namespace+"/"+registry.Name, command.OfHost, err)
	}
	out := &v1alpha1.ClusterRegistry{}
	return out, hostcluster.Decode(object, out)
}

// follow returns when the registry runs the version and is Ready, or when that is not
// to be expected.
func (s *starter) follow(ctx context.Context, client dynamic.ResourceInterface, registry *v1alpha1.ClusterRegistry) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	shown := ""
	for {
		done, progress, err := s.judge(registry)
		if progress != "" && progress != shown {
			fmt.Fprintln(s.env.ErrOut, command.Plain(progress))
			shown = progress
		}
		if done || err != nil {
			return err
		}
		object, err := hostcluster.Next(ctx, client, registry)
		if err != nil {
			return fmt.Errorf("%s/%s %w", registry.Namespace, registry.Name, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s/%s is not done: %s; it continues, and \"kubectl registry status %s -w\" shows it", registry.Namespace, registry.Name, shown, registry.Name)
		}
		if object == nil {
			continue
		}
		registry = &v1alpha1.ClusterRegistry{}
		if err := hostcluster.Decode(object, registry); err != nil {
			return err
		}
	}
}

// judge reports whether the upgrade is done, how far it is, and why it will not be
// done.
func (s *starter) judge(registry *v1alpha1.ClusterRegistry) (done bool, progress string, err error) {
	status := &registry.Status
	if string(registry.Spec.Version) != s.to {
		return false, "", fmt.Errorf("someone has set spec.version to %s", registry.Spec.Version)
	}
	if status.ObservedGeneration < registry.Generation {
		return false, "waiting for the operator", nil
	}
	if len(status.History) > 0 {
		if last := status.History[0]; last.Version == s.to && last.State == v1alpha1.TransitionRolledBack && last.Generation == registry.Generation {
			return false, "", fmt.Errorf("the upgrade to %s was rolled back: %s", s.to, command.Plain(last.Message))
		}
	}
	if supported := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionVersionSupported); supported != nil && supported.Status == metav1.ConditionFalse &&
		status.Operation == nil && supported.Reason != v1alpha1.ReasonUpgradeInProgress {
		return false, "", fmt.Errorf("the operator does not begin it: %s: %s", supported.Reason, command.Plain(supported.Message))
	}
	if status.Version == s.to && status.Operation == nil && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return true, "done", nil
	}
	if status.Operation != nil {
		progress = status.Operation.Progress
	}
	for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionReady} {
		if found := meta.FindStatusCondition(status.Conditions, kind); found != nil && found.Message != "" {
			return false, progress + ": " + found.Message, nil
		}
	}
	return false, progress, nil
}
