package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

type creator struct {
	waiter
	name, policy string
	dryRun       command.DryRun
	output       command.Output
}

// policies are what --deletion-policy can be.
var policies = []string{string(v1alpha1.BackupDeletionPolicyRetain), string(v1alpha1.BackupDeletionPolicyDelete)}

// NewCreate returns the command backup create.
func NewCreate(env *command.Env) *cobra.Command {
	c := &creator{waiter: waiter{env: env}}
	cmd := &cobra.Command{
		Use:   "create [REGISTRY]",
		Short: "Take a backup of a registry now",
		Long: `Have the operator take a backup of a registry now, in the store that spec.backup names, by a
ClusterRegistryBackup. It is also taken while spec.backup.suspend is true, and also when nothing has
changed since the backup before.

With --wait, exits with 1 when the backup has failed or takes longer than --timeout; it then
continues, and "backup show" shows it.`,
		Example: `  # Take one, and wait until it is in its store and verified
  kubectl registry backup create fleet --wait

  # One whose content in the store goes with the object
  kubectl registry backup create fleet --name before-cleanup --deletion-policy Delete`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	cmd.Flags().StringVar(&c.name, "name", "", "the name of the backup, in its store, too (default: that of the registry with the time)")
	cmd.Flags().StringVar(&c.policy, "deletion-policy", policies[0], "`Retain|Delete`: whether the backup stays in its store when the ClusterRegistryBackup is deleted")
	_ = cmd.RegisterFlagCompletionFunc("deletion-policy", cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp))
	c.addFlags(cmd, "wait until the backup is in its store and, unless spec.backup.verify is Never, verified")
	c.dryRun.AddFlag(cmd)
	c.output.AddFlag(cmd)
	return cmd
}

func (c *creator) run(ctx context.Context, name string) error {
	if err := errors.Join(c.dryRun.Validate(), c.output.Validate()); err != nil {
		return err
	}
	if !slices.Contains(policies, c.policy) {
		return command.Usagef("--deletion-policy=%s: use %s", command.Plain(c.policy), strings.Join(policies, " or "))
	}
	registry, err := hostcluster.Find(ctx, c.env, name)
	if err != nil {
		return err
	}
	if why := unable(registry.Namespace, registry.Name, registry); why != "" {
		return command.Refusedf("no backup can be taken: %s", why)
	}
	if c.name == "" {
		c.name = registry.Name + "-" + c.env.Now().UTC().Format("20060102-150405")
	}
	fmt.Fprintf(c.env.ErrOut, "ClusterRegistry %s/%s in the host cluster of context %s: backup %s\n", registry.Namespace, registry.Name, command.Plain(c.env.Context()), command.Plain(c.name))
	if why := notReady(registry); why != "" {
		fmt.Fprintf(c.env.ErrOut, "note: %s\n", command.Plain(why))
	}
	b, err := c.create(ctx, registry)
	if err != nil {
		return err
	}
	if c.wait && c.dryRun == "none" {
		if b, err = c.follow(ctx, b, func(b *v1alpha1.ClusterRegistryBackup) bool { return phase(b).Ended() }); err != nil {
			return err
		}
	}
	return c.report(b)
}

// report says what came of it.
func (c *creator) report(b *v1alpha1.ClusterRegistryBackup) error {
	if c.output != "" {
		b.ManagedFields = nil
		b.SetGroupVersionKind(Kind)
		if err := c.output.Print(c.env.Out, b); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.env.Out, "clusterregistrybackup.operator.clusterregistry.io/%s created%s\n", b.Name, c.dryRun.Suffix())
	}
	switch {
	case !c.wait || c.dryRun != "none":
		return nil
	case b.Status.Phase == v1alpha1.BackupCompleted, b.Status.Phase == v1alpha1.BackupSkipped:
		if c.output == "" {
			fmt.Fprintln(c.env.Out, command.Plain(of(b, c.env.Now()).Verdict))
		}
		return nil
	}
	return fmt.Errorf("backup %s/%s is %s", b.Namespace, b.Name, command.Plain(state(b)))
}

// create creates the object.
func (c *creator) create(ctx context.Context, registry *v1alpha1.ClusterRegistry) (*v1alpha1.ClusterRegistryBackup, error) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Kind.GroupVersion().String(), "kind": Kind.Kind,
		"metadata": map[string]any{"namespace": registry.Namespace, "name": c.name, "annotations": map[string]any{v1alpha1.AnnotationBackupReason: string(v1alpha1.BackupManual)}},
		"spec":     map[string]any{"registryRef": map[string]any{"name": registry.Name}, "deletionPolicy": c.policy},
	}}
	b := &v1alpha1.ClusterRegistryBackup{}
	if c.dryRun.Client() {
		return b, decode(object, b)
	}
	host, err := c.env.Host()
	if err != nil {
		return nil, err
	}
	made, err := host.Resource(Resource).Namespace(registry.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: command.FieldManager, DryRun: c.dryRun.Options()})
	if apierrors.IsAlreadyExists(err) {
		return nil, command.Refusedf("there is a ClusterRegistryBackup %s/%s already: choose another --name", registry.Namespace, command.Plain(c.name))
	}
	if err != nil {
		return nil, c.env.Explain("create ClusterRegistryBackup "+registry.Namespace+"/"+command.Plain(c.name), command.OfHost, err)
	}
	return b, decode(made, b)
}

// Ago says how long ago a time was, in words of one size.
func Ago(t *metav1.Time, now time.Time) string {
	switch age := now.Sub(t.Time).Truncate(time.Second); {
	case age < 0:
		return "in the future, by this computer's clock"
	case age < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(age.Seconds()))
	case age < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(age.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(age.Hours()/24))
	}
}
