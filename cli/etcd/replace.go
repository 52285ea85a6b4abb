package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// NewReplace returns the command etcd replace.
func NewReplace(env *command.Env) *cobra.Command {
	c := &change{env: env}
	cmd := &cobra.Command{
		Use:   "replace MEMBER",
		Short: "Replace an etcd member by a new one",
		Long: `Have the operator replace an etcd member by a new one of the same name, with a new volume. The old
volume is kept. It is refused where the other members would be no majority, and for a single
member: set spec.etcd.replicas to 3 first. The plan is shown first, and has to be confirmed.

A member whose data is gone is replaced automatically; see spec.etcd.replaceAfter.`,
		Example: `  # Show what would happen, and ask
  kubectl registry etcd replace fleet-etcd-1

  # Let the host cluster check it, and change nothing
  kubectl registry etcd replace fleet-etcd-1 -n default --dry-run=server`,
		Args: command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeMembers(env, cmd, "", begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.replace(cmd.Context(), args[0]) },
	}
	c.addFlags(cmd)
	return cmd
}

func (c *change) replace(ctx context.Context, member string) error {
	if err := c.dryRun.Validate(); err != nil {
		return err
	}
	host, err := c.env.Host()
	if err != nil {
		return err
	}
	all, _, err := hostcluster.List(ctx, host, c.env.Namespace())
	if err != nil {
		return c.env.Explain("list the ClusterRegistries", command.OfHost, err)
	}
	registry, err := owner(all, member)
	if err != nil {
		return err
	}
	p, err := replacePlan(registry, member)
	if err != nil {
		return err
	}
	return c.carryOut(ctx, registry, p)
}

// owner returns the registry that has a member of the name. An error names those that there
// are.
func owner(all []v1alpha1.ClusterRegistry, name string) (*v1alpha1.ClusterRegistry, error) {
	var found []*v1alpha1.ClusterRegistry
	var known, in []string
	for i := range all {
		if all[i].Spec.Etcd.External != nil {
			continue
		}
		for _, member := range all[i].Status.Etcd.Members {
			known = append(known, all[i].Namespace+"/"+member.Name)
			if member.Name == name {
				found, in = append(found, &all[i]), append(in, all[i].Namespace)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, command.Usagef("there is an etcd member %q in the namespaces %s: name one with -n", command.Plain(name), strings.Join(in, ", "))
	case len(known) == 0:
		return nil, command.Usagef("there is no etcd member %q: no registry that you may see has members that the operator runs", command.Plain(name))
	}
	return nil, command.Usagef("there is no etcd member %q: there are %s", command.Plain(name), strings.Join(known, ", "))
}

// replacePlan returns what a replacement does, or why it is refused.
func replacePlan(registry *v1alpha1.ClusterRegistry, name string) (plan, error) {
	members := registry.Status.Etcd.Members
	i := slices.IndexFunc(members, func(m v1alpha1.EtcdMember) bool { return m.Name == name })
	member, ready := members[i], 0
	for _, other := range members {
		if other.Name != name && other.Ready && !other.Learner {
			ready++
		}
	}
	majority := len(members)/2 + 1
	switch {
	case len(members) == 1:
		return plan{}, command.Refusedf("%s is the only etcd member of %s/%s, and its data would be gone: set spec.etcd.replicas to 3 first, replace it then, and set it back", name, registry.Namespace, registry.Name)
	case member.ID == "":
		return plan{}, command.Refusedf("the operator has not reported the ID of etcd member %s yet: wait until it has (kubectl registry etcd members %s)", name, registry.Name)
	case ready < majority:
		return plan{}, command.Refusedf("without %s, %d of %d etcd members of %s/%s are ready, and a majority is %d: bring another one back first; see \"kubectl registry etcd members %s\"", name, ready, len(members), registry.Namespace, registry.Name, majority, registry.Name)
	}
	value := strings.Join(append(waiting(registry, member.ID), member.ID), ",")
	p := plan{does: fmt.Sprintf("replace etcd member %s (ID %s)", name, member.ID),
		patch: annotate(v1alpha1.AnnotationReplaceMember, value), sets: fmt.Sprintf("the annotation %s=%s", v1alpha1.AnnotationReplaceMember, value)}
	p.steps = []string{
		fmt.Sprintf("%s is removed from etcd; %d of %d members are left, and serve", name, len(members)-1, len(members)),
		"its pod ends, and its claim is deleted; the volume is kept (its PersistentVolume is set to Retain first), with spec.deletionPolicy Delete until the new member is ready",
		"a new member of the same name is added as a learner, which has no vote, with a new claim, and copies the data",
		"it gets a vote when it has caught up, and the data of all members is compared",
	}
	if len(members) == 3 {
		p.steps[0] += "; until the new one has a vote, no other may fail"
	}
	if member.Leader {
		p.notices = []string{"the leadership moves to another member, by which requests take a moment longer"}
	}
	return p, nil
}

// waiting returns the IDs of other members that were asked to be replaced, and are not yet.
func waiting(registry *v1alpha1.ClusterRegistry, but string) []string {
	var out []string
	for id := range strings.SplitSeq(registry.Annotations[v1alpha1.AnnotationReplaceMember], ",") {
		id = strings.TrimSpace(id)
		if id != but && slices.ContainsFunc(registry.Status.Etcd.Members, func(m v1alpha1.EtcdMember) bool { return id != "" && m.ID == id }) {
			out = append(out, id)
		}
	}
	return out
}
