package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
)

type verifier struct {
	waiter
	dryRun command.DryRun
}

// NewVerify returns the command backup verify.
func NewVerify(env *command.Env) *cobra.Command {
	v := &verifier{waiter: waiter{env: env}}
	cmd := &cobra.Command{
		Use:   "verify NAME",
		Short: "Have a backup verified again",
		Long: `Have the operator verify a backup again: it is fetched from its store, restored on trial, and compared
with what the etcd members had when it was taken. It sets the annotation
operator.clusterregistry.io/verify to the time; the same value verifies once.

With --wait, exits with 1 when the backup could not be verified, is damaged, or that takes longer than
--timeout; it then continues, and "backup show" shows it.`,
		Example: `  # And see what comes of it
  kubectl registry backup verify fleet-20261123-1100 --wait`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: Complete(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), args[0]) },
	}
	v.addFlags(cmd, "wait until the backup was verified")
	v.dryRun.AddFlag(cmd)
	return cmd
}

func (v *verifier) run(ctx context.Context, name string) error {
	if err := v.dryRun.Validate(); err != nil {
		return err
	}
	b, err := Find(ctx, v.env, name)
	if err != nil {
		return err
	}
	registry, err := RegistryOf(ctx, v.env, b)
	if err != nil {
		return err
	}
	if why := unverifiable(b, registry); why != "" {
		return command.Refusedf("backup %s/%s can't be verified: %s", b.Namespace, b.Name, command.Plain(why))
	}
	fmt.Fprintf(v.env.ErrOut, "ClusterRegistryBackup %s/%s in the host cluster of context %s: verify %s\n", b.Namespace, b.Name, command.Plain(v.env.Context()), command.Plain(b.Status.Location))
	if why := notReady(registry); why != "" {
		fmt.Fprintf(v.env.ErrOut, "note: %s\n", command.Plain(why))
	}
	request := v.env.Now().UTC().Format(time.RFC3339)
	if b, err = v.ask(ctx, b, request); err != nil {
		return err
	}
	fmt.Fprintf(v.env.Out, "clusterregistrybackup.operator.clusterregistry.io/%s annotated%s\n", b.Name, v.dryRun.Suffix())
	if !v.wait || v.dryRun != "none" {
		return nil
	}
	asked := v.env.Now()
	b, err = v.follow(ctx, b, func(b *v1alpha1.ClusterRegistryBackup) bool {
		return b.Status.VerifyRequest == request || b.Annotations[v1alpha1.AnnotationVerify] != request
	})
	switch {
	case err != nil:
		return err
	case b.Status.VerifyRequest != request:
		return fmt.Errorf("someone else has asked for another verification of backup %s/%s: \"kubectl registry backup show %s -n %s\" shows what came of it", b.Namespace, b.Name, b.Name, b.Namespace)
	case b.Status.Phase != v1alpha1.BackupCompleted || b.Status.Message != "" || b.Status.VerifiedTime == nil:
		return fmt.Errorf("backup %s/%s is %s", b.Namespace, b.Name, command.Plain(state(b)))
	}
	fmt.Fprintf(v.env.Out, "verified at %s, %s after it was asked for\n", b.Status.VerifiedTime.UTC().Format(time.RFC3339), v.env.Now().Sub(asked).Truncate(time.Second))
	return nil
}

// unverifiable says why a backup can't be verified, nothing when it can.
func unverifiable(b *v1alpha1.ClusterRegistryBackup, registry *v1alpha1.ClusterRegistry) string {
	status := b.Status
	switch {
	case !phase(b).Ended():
		return "it is not done: " + state(b)
	case phase(b) == v1alpha1.BackupSkipped:
		return "nothing had changed when it was due, and it has no content of its own: verify backup " + status.Name
	case status.Location == "" || status.Name != b.Name:
		return "it has nothing in the store: " + strings.TrimSuffix(state(b), ".")
	case b.DeletionTimestamp != nil:
		return "it is being deleted"
	}
	return unable(b.Namespace, b.Spec.RegistryRef.Name, registry)
}

// ask sets the annotation on the backup that was read, and on no other of its name.
func (v *verifier) ask(ctx context.Context, b *v1alpha1.ClusterRegistryBackup, request string) (*v1alpha1.ClusterRegistryBackup, error) {
	if v.dryRun.Client() {
		return b, nil
	}
	host, err := v.env.Host()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": b.UID, "annotations": map[string]any{v1alpha1.AnnotationVerify: request}}})
	if err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
	}
	object, err := host.Resource(Resource).Namespace(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: command.FieldManager, DryRun: v.dryRun.Options()})
	if err != nil {
		return nil, v.env.Explain("annotate ClusterRegistryBackup "+b.Namespace+"/"+b.Name, command.OfHost, err)
	}
	out := &v1alpha1.ClusterRegistryBackup{}
	return out, decode(object, out)
}
