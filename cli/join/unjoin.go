package join

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// unjoiner is one run of unjoin.
type unjoiner struct {
	env            *command.Env
	name           string
	yes            bool
	ignoreNotFound bool
	dryRun         command.DryRun
}

// NewUnjoin returns the command unjoin.
func NewUnjoin(env *command.Env) *cobra.Command {
	u := &unjoiner{env: env}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Remove a cluster from the registry",
		Long: `Remove a cluster's entry from the registry. The cluster itself is neither asked nor changed, so
one that is gone can be removed like any other.`,
		Example: `  # Show the entry, ask, and delete it
  kubectl registry unjoin east

  # In a script, which may run twice
  kubectl registry unjoin east --yes --ignore-not-found`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: env.CompleteClusters(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.name = args[0]
			return u.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&u.yes, "yes", false, "don't ask")
	cmd.Flags().BoolVar(&u.ignoreNotFound, "ignore-not-found", false, "succeed when the registry has no such cluster")
	u.dryRun.AddFlag(cmd)
	return cmd
}

func (u *unjoiner) run(ctx context.Context) error {
	if err := u.dryRun.Validate(); err != nil {
		return err
	}
	registry, err := u.env.Registry()
	if err != nil {
		return err
	}
	clusters := registry.ClusterregistryV1beta1().Clusters()
	cluster, err := clusters.Get(ctx, u.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !unregistered.Is(err) && u.ignoreNotFound {
		return nil
	}
	if err != nil {
		return u.env.Explain("read the cluster "+command.Plain(u.name), command.OfRegistry, err)
	}
	if !u.yes && u.dryRun == "none" {
		name := cluster.Name
		if people := cluster.Spec.DisplayName; people != "" {
			name += " (" + command.Plain(people) + ")"
		}
		fmt.Fprintf(u.env.ErrOut, "%s, %s, at %s, in the registry of context %s\n", name, command.ID(cluster), addresses(cluster), command.Plain(u.env.Context()))
		if err := u.env.Confirm(ctx, fmt.Sprintf("Remove %q from the registry?", cluster.Name), "--yes"); err != nil {
			return err
		}
	}
	if !u.dryRun.Client() {
		// What was shown is what is deleted, and not one that took its name since.
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &cluster.UID}, DryRun: u.dryRun.Options()}
		err := clusters.Delete(ctx, u.name, options)
		if err != nil && (!apierrors.IsNotFound(err) || unregistered.Is(err) || !u.ignoreNotFound) {
			return u.env.Explain("delete the cluster "+cluster.Name, command.OfRegistry, err)
		}
	}
	fmt.Fprintf(u.env.Out, "cluster.clusterregistry.k8s.io/%s deleted%s\n", cluster.Name, u.dryRun.Suffix())
	return nil
}
