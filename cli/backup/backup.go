// Package backup takes, shows and verifies backups of registries: the commands backup create,
// list, show and verify. The operator does it, in the store that the registry names; what is
// shown is what it has reported, and no command reaches a store.
package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// Resource is that of ClusterRegistryBackups.
var Resource = v1alpha1.SchemeGroupVersion.WithResource("clusterregistrybackups")

// Kind is that of ClusterRegistryBackups.
var Kind = v1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackup")

// New returns the command backup with those below it.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Take, show and verify backups of registries",
		Args:  command.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(NewCreate(env), NewList(env), NewShow(env), NewVerify(env))
	return cmd
}

// List returns the ClusterRegistryBackups of a namespace, or of all when it is empty, in the
// order in which they were created. The error is the server's own.
func List(ctx context.Context, host dynamic.Interface, namespace string) ([]v1alpha1.ClusterRegistryBackup, error) {
	list, err := host.Resource(Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]v1alpha1.ClusterRegistryBackup, len(list.Items))
	for i := range list.Items {
		if err := decode(&list.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.ClusterRegistryBackup) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, nil
}

func decode(from *unstructured.Unstructured, to *v1alpha1.ClusterRegistryBackup) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		return fmt.Errorf("read ClusterRegistryBackup %s/%s: %w; this plugin may be too old for the operator", from.GetNamespace(), from.GetName(), err)
	}
	return nil
}

// Find returns the backup that a person means by a name. Without --namespace all namespaces
// are searched.
func Find(ctx context.Context, env *command.Env, name string) (*v1alpha1.ClusterRegistryBackup, error) {
	host, err := env.Host()
	if err != nil {
		return nil, err
	}
	all, err := List(ctx, host, env.Namespace())
	if err != nil {
		return nil, env.Explain("list the ClusterRegistryBackups", command.OfHost, err)
	}
	var found []*v1alpha1.ClusterRegistryBackup
	var in []string
	for i := range all {
		if all[i].Name == name {
			found, in = append(found, &all[i]), append(in, all[i].Namespace)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, command.Usagef("there is no ClusterRegistryBackup %q that you may see: \"kubectl registry backup list\" shows those that there are", command.Plain(name))
	}
	return nil, command.Usagef("there is a ClusterRegistryBackup %q in the namespaces %s: name one with -n", command.Plain(name), strings.Join(in, ", "))
}

// RegistryOf returns the registry of a backup, nil when it is gone.
func RegistryOf(ctx context.Context, env *command.Env, b *v1alpha1.ClusterRegistryBackup) (*v1alpha1.ClusterRegistry, error) {
	host, err := env.Host()
	if err != nil {
		return nil, err
	}
	all, _, err := hostcluster.List(ctx, host, b.Namespace)
	if err != nil {
		return nil, env.Explain("list the ClusterRegistries", command.OfHost, err)
	}
	for i := range all {
		if all[i].Name == b.Spec.RegistryRef.Name {
			return &all[i], nil
		}
	}
	return nil, nil //nolint:nilnil // it is gone, which is no error
}

// unable says why the operator can do nothing about the backups of a registry, nothing when it
// can.
func unable(namespace, name string, registry *v1alpha1.ClusterRegistry) string {
	switch {
	case registry == nil:
		return fmt.Sprintf("there is no ClusterRegistry %s/%s any more, which names the store", namespace, name)
	case registry.Spec.Etcd.External != nil:
		return fmt.Sprintf("the etcd of %s/%s is external: save it with the tools that it is run with, such as etcdctl snapshot save", namespace, name)
	case registry.Spec.Backup == nil:
		return fmt.Sprintf("%s/%s has no spec.backup, which names the store: set it first", namespace, name)
	case registry.DeletionTimestamp != nil:
		return fmt.Sprintf("%s/%s is being deleted", namespace, name)
	}
	return ""
}

// notReady says what the condition BackupReady of a registry has against a backup, nothing when
// there is nothing.
func notReady(registry *v1alpha1.ClusterRegistry) string {
	if registry.Spec.Paused {
		return "spec.paused is true, and the operator takes no backup until it is false"
	}
	ready := meta.FindStatusCondition(registry.Status.Conditions, v1alpha1.ConditionBackupReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return "BackupReady is False: " + ready.Reason + ": " + ready.Message
}

// waiter waits for a backup.
type waiter struct {
	env     *command.Env
	wait    bool
	timeout time.Duration
}

func (w *waiter) addFlags(cmd *cobra.Command, until string) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, until)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 30*time.Minute, "how long to wait")
}

// follow waits until a backup is as is asked for, shows what it does meanwhile, and returns it.
func (w *waiter) follow(ctx context.Context, b *v1alpha1.ClusterRegistryBackup, done func(*v1alpha1.ClusterRegistryBackup) bool) (*v1alpha1.ClusterRegistryBackup, error) {
	host, err := w.env.Host()
	if err != nil {
		return nil, err
	}
	client := host.Resource(Resource).Namespace(b.Namespace)
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	for shown := ""; !done(b); {
		if now := state(b); now != shown {
			fmt.Fprintln(w.env.ErrOut, command.Plain(now))
			shown = now
		}
		object, err := hostcluster.Next(ctx, client, b)
		if errors.Is(err, hostcluster.ErrDeleted) {
			return nil, fmt.Errorf("backup %s/%s %w", b.Namespace, b.Name, err)
		}
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("backup %s/%s is not done: %s; it continues, and \"kubectl registry backup show %s -n %s\" shows it", b.Namespace, b.Name, command.Plain(shown), b.Name, b.Namespace)
		}
		if object == nil {
			continue
		}
		b = &v1alpha1.ClusterRegistryBackup{}
		if err := decode(object, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// state says in a few words how far a backup is.
func state(b *v1alpha1.ClusterRegistryBackup) string {
	if b.Status.Message == "" {
		return string(phase(b))
	}
	return string(phase(b)) + ": " + b.Status.Message
}

// phase returns the phase of a backup, which the operator may not have set yet.
func phase(b *v1alpha1.ClusterRegistryBackup) v1alpha1.BackupPhase {
	if b.Status.Phase == "" {
		return v1alpha1.BackupPending
	}
	return b.Status.Phase
}

// Complete completes the names of backups.
func Complete(env *command.Env) command.Completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		host, err := env.Host()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
		defer cancel()
		all, err := List(ctx, host, env.Namespace())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for i := range all {
			if strings.HasPrefix(all[i].Name, begun) {
				names = append(names, all[i].Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
