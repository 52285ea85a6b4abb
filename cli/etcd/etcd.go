// Package etcd shows the etcd members of registries, and asks the operator to work on them:
// the commands etcd members, defrag, replace and rotate-ca. What changes something says first
// what will happen, and asks; the operator does it, when it is safe to.
package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// New returns the command etcd with those below it.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Show and maintain the etcd of registries",
		Args:  command.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewMembers(env), NewDefrag(env), NewReplace(env), NewRotate(env))
	return cmd
}

// plan is what a command asks the operator for, and what will happen then.
type plan struct {
	// does is what the operator is asked for, steps what happens, in this order, and notices
	// what clients notice, nothing when that is nothing.
	does           string
	steps, notices []string
	// sets is what is written, for a person, and patch the same as a merge patch.
	sets  string
	patch map[string]any
}

// change is one run of a command that asks the operator for something.
type change struct {
	env    *command.Env
	yes    bool
	dryRun command.DryRun
}

func (c *change) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.yes, "yes", false, "don't ask")
	c.dryRun.AddFlag(cmd)
}

// carryOut shows a plan, asks, and writes it to a registry that no one has changed since it
// was read.
func (c *change) carryOut(ctx context.Context, registry *v1alpha1.ClusterRegistry, p plan) error {
	host, err := c.env.Host()
	if err != nil {
		return err
	}
	if err := p.print(c.env.ErrOut, registry, c.env.Context()); err != nil {
		return err
	}
	if !c.yes && c.dryRun == "none" {
		if err := c.env.Confirm(ctx, "Ask the operator to do this?", "--yes"); err != nil {
			return err
		}
	}
	if !c.dryRun.Client() {
		p.patch["metadata"] = with(p.patch["metadata"], "resourceVersion", registry.ResourceVersion)
		body, err := json.Marshal(p.patch)
		if err != nil {
			return fmt.Errorf("write the patch: %w", err)
		}
		if _, err := host.Resource(hostcluster.Resource).Namespace(registry.Namespace).Patch(ctx, registry.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: command.FieldManager, DryRun: c.dryRun.Options()}); err != nil {
			return c.env.Explain("set "+p.sets+" of "+registry.Namespace+"/"+registry.Name, command.OfHost, err)
		}
	}
	fmt.Fprintf(c.env.Out, "clusterregistry.operator.clusterregistry.io/%s patched%s\n", registry.Name, c.dryRun.Suffix())
	return nil
}

// with returns a part of a patch with one more key.
func with(part any, key, value string) map[string]any {
	out, is := part.(map[string]any)
	if !is {
		out = map[string]any{}
	}
	out[key] = value
	return out
}

// annotate returns the patch that sets an annotation.
func annotate(key, value string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}

// print writes a plan for people.
func (p plan) print(w io.Writer, registry *v1alpha1.ClusterRegistry, context string) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "ClusterRegistry %s/%s in the host cluster of context %s: %s\n", registry.Namespace, registry.Name, command.Plain(context), command.Plain(p.does))
	for i, step := range p.steps {
		fmt.Fprintf(out, "  %d. %s.\n", i+1, command.Plain(step))
	}
	for _, notice := range p.notices {
		fmt.Fprintf(out, "  Clients notice: %s.\n", command.Plain(notice))
	}
	if len(p.notices) == 0 {
		out.WriteString("  Clients notice nothing.\n")
	}
	for _, hold := range hostcluster.Holds(registry) {
		fmt.Fprintf(out, "  It waits until this is resolved: %s.\n", command.Plain(hold))
	}
	fmt.Fprintf(out, "  It sets %s.\n", command.Plain(p.sets))
	_, err := io.WriteString(w, out.String())
	return err
}

// find returns a registry whose etcd is the operator's, by its name.
func find(ctx context.Context, env *command.Env, name string) (*v1alpha1.ClusterRegistry, error) {
	registry, err := hostcluster.Find(ctx, env, name)
	if err != nil {
		return nil, err
	}
	return registry, own(registry)
}

// own refuses a registry whose etcd the operator does not run.
func own(registry *v1alpha1.ClusterRegistry) error {
	if registry.Spec.Etcd.External != nil {
		return command.Refusedf("the etcd of %s/%s is external, and is for those who run it: the operator changes nothing of it", registry.Namespace, registry.Name)
	}
	return nil
}

// names returns the members' names, for a message.
func names(registry *v1alpha1.ClusterRegistry) string {
	var out []string
	for _, member := range registry.Status.Etcd.Members {
		out = append(out, member.Name)
	}
	if len(out) == 0 {
		return "none that the operator has reported"
	}
	return strings.Join(out, ", ")
}

// completeMembers completes the names of etcd members of the registries that a person may
// see.
func completeMembers(env *command.Env, cmd *cobra.Command, registry, begun string) ([]string, cobra.ShellCompDirective) {
	host, err := env.Host()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
	defer cancel()
	all, _, err := hostcluster.List(ctx, host, env.Namespace())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for i := range all {
		if registry != "" && all[i].Name != registry || all[i].Spec.Etcd.External != nil {
			continue
		}
		for _, member := range all[i].Status.Etcd.Members {
			if strings.HasPrefix(member.Name, begun) {
				out = append(out, member.Name)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
