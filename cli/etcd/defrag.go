package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/internal/contract"
)

// NewDefrag returns the command etcd defrag.
func NewDefrag(env *command.Env) *cobra.Command {
	c := &change{env: env}
	cmd := &cobra.Command{
		Use:   "defrag REGISTRY [MEMBER]",
		Short: "Have etcd members give free space back",
		Long: `Have the operator defragment the etcd members of a registry, or one of them, now: whatever is free
of their files, outside of the maintenance window, and a single member, too, during which the
registry is unavailable. The plan is shown first, and has to be confirmed.

It is asked for by an annotation with the time, and done once.`,
		Example: `  # Show what would happen, and ask
  kubectl registry etcd defrag fleet

  # One member, in a script
  kubectl registry etcd defrag fleet fleet-etcd-1 --yes`,
		Args: command.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return hostcluster.Complete(env)(cmd, args, begun)
			case 1:
				return completeMembers(env, cmd, args[0], begun)
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.defrag(cmd.Context(), args[0], strings.Join(args[1:], ""))
		},
	}
	c.addFlags(cmd)
	return cmd
}

func (c *change) defrag(ctx context.Context, name, member string) error {
	if err := c.dryRun.Validate(); err != nil {
		return err
	}
	registry, err := find(ctx, c.env, name)
	if err != nil {
		return err
	}
	p, err := defragPlan(registry, member, c.env.Now())
	if err != nil {
		return err
	}
	return c.carryOut(ctx, registry, p)
}

// defragPlan returns what a defragmentation does. Its request is newer than what was done,
// whatever this computer's clock says.
func defragPlan(registry *v1alpha1.ClusterRegistry, only string, now time.Time) (plan, error) {
	request := contract.DefragmentRequest{Time: now.UTC().Truncate(time.Second), Member: only}
	var who []string
	members := slices.Clone(registry.Status.Etcd.Members)
	slices.SortStableFunc(members, func(a, b v1alpha1.EtcdMember) int { return last(a) - last(b) })
	for _, member := range members {
		if only != "" && member.Name != only {
			continue
		}
		step := fmt.Sprintf("%s rewrites its file%s", member.Name, sized(member))
		if member.Leader && len(members) > 1 && only == "" {
			step += "; it leads, and so comes last"
		}
		who = append(who, step)
		if done := member.DefragmentedTime; done != nil && !done.Time.Before(request.Time) {
			request.Time = done.Add(time.Second).UTC().Truncate(time.Second)
		}
	}
	if len(who) == 0 {
		return plan{}, command.Usagef("%s/%s has no etcd member %q: its members are %s", registry.Namespace, registry.Name, command.Plain(only), names(registry))
	}
	p := plan{does: "defragment " + which(only), patch: annotate(v1alpha1.AnnotationDefragment, request.String()), sets: fmt.Sprintf("the annotation %s=%s", v1alpha1.AnnotationDefragment, request)}
	p.steps = append([]string{"the operator waits until all members are ready and nothing else is being replaced"}, who...)
	if len(members) == 1 {
		p.notices = []string{"the registry is unavailable while its only member is defragmented, for about a second per 100 MB that are in use"}
	} else {
		p.notices = []string{"requests to a member that is being defragmented take longer, by about a second per 100 MB that are in use"}
	}
	return p, nil
}

// last is 1 for the leader, whose turn comes after the others'.
func last(member v1alpha1.EtcdMember) int {
	if member.Leader {
		return 1
	}
	return 0
}

// which says which members are meant.
func which(only string) string {
	if only == "" {
		return "all etcd members, one at a time"
	}
	return "etcd member " + only
}

// sized says how large a member's file is.
func sized(member v1alpha1.EtcdMember) string {
	if member.DatabaseSize == nil || member.DatabaseSizeInUse == nil {
		return ""
	}
	return fmt.Sprintf(" of %s, of which %s are in use", member.DatabaseSize, member.DatabaseSizeInUse)
}
