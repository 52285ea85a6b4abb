package backup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// Listed are backups, with how those of each registry are.
type Listed struct {
	Registries []Registry                       `json:"registries"`
	Backups    []v1alpha1.ClusterRegistryBackup `json:"backups"`
}

// Registry is how the backups of a registry are.
type Registry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Attention is true when the condition BackupReady is not True, though there is a
	// spec.backup.
	Attention bool   `json:"attention,omitempty"`
	Message   string `json:"message"`
	// Status is what the operator has reported.
	Status *v1alpha1.BackupStatus `json:"status,omitempty"`
}

type lister struct {
	env    *command.Env
	output command.Output
}

// NewList returns the command backup list.
func NewList(env *command.Env) *cobra.Command {
	l := &lister{env: env}
	cmd := &cobra.Command{
		Use:   "list [REGISTRY]",
		Short: "List the backups of registries",
		Long: `List backups, the newest last, and say of each registry how its backups are. Those in a store that
have no ClusterRegistryBackup are not listed: no command reaches a store.

Exits with 4 when the condition BackupReady of a registry with spec.backup is not True.`,
		Example: `  # Those of one registry
  kubectl registry backup list fleet

  # All, for a program
  kubectl registry backup list -o json`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	l.output.AddFlag(cmd)
	return cmd
}

func (l *lister) run(ctx context.Context, name string) error {
	if err := l.output.Validate(); err != nil {
		return err
	}
	host, err := l.env.Host()
	if err != nil {
		return err
	}
	registries, _, err := hostcluster.List(ctx, host, l.env.Namespace())
	if err != nil {
		return l.env.Explain("list the ClusterRegistries", command.OfHost, err)
	}
	backups, err := List(ctx, host, l.env.Namespace())
	if err != nil {
		return l.env.Explain("list the ClusterRegistryBackups", command.OfHost, err)
	}
	found, err := listed(l.env, registries, backups, name)
	if err != nil {
		return err
	}
	if l.output != "" {
		err = l.output.Print(l.env.Out, found)
	} else {
		err = found.print(l.env.Out, l.env.Now())
	}
	i := slices.IndexFunc(found.Registries, func(r Registry) bool { return r.Attention })
	if err == nil && i >= 0 {
		return command.Shown(found.Registries[i].Message)
	}
	return err
}

// listed returns the backups of the registries of a name, of all when it is empty. One whose
// registry is gone counts by the name, too.
func listed(env *command.Env, registries []v1alpha1.ClusterRegistry, backups []v1alpha1.ClusterRegistryBackup, name string) (*Listed, error) {
	out := &Listed{Registries: []Registry{}, Backups: []v1alpha1.ClusterRegistryBackup{}}
	for i := range registries {
		if r := &registries[i]; name == "" || r.Name == name {
			out.Registries = append(out.Registries, judge(r))
		}
	}
	for i := range backups {
		if name == "" || backups[i].Spec.RegistryRef.Name == name {
			backups[i].ManagedFields = nil
			out.Backups = append(out.Backups, backups[i])
		}
	}
	if name != "" && len(out.Registries)+len(out.Backups) == 0 {
		_, err := hostcluster.Pick(env, registries, name)
		return nil, err
	}
	return out, nil
}

// judge says how the backups of a registry are.
func judge(r *v1alpha1.ClusterRegistry) Registry {
	out := Registry{Namespace: r.Namespace, Name: r.Name, Status: r.Status.Backup}
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionBackupReady)
	switch {
	case r.Spec.Backup == nil:
		out.Message = "no backups are taken: it has no spec.backup"
	case ready == nil:
		out.Attention, out.Message = true, "the operator has not reported of its backups"
	default:
		out.Attention, out.Message = ready.Status != metav1.ConditionTrue, ready.Message
		if out.Attention {
			out.Message = ready.Reason + ": " + ready.Message
		}
	}
	return out
}

// print writes backups for people: the verdicts first.
func (l *Listed) print(w io.Writer, now time.Time) error {
	out := &strings.Builder{}
	for _, r := range l.Registries {
		word := "OK"
		switch {
		case r.Attention:
			word = "ATTENTION"
		case r.Status == nil:
			word = "NONE"
		}
		fmt.Fprintf(out, "%s: %s/%s: %s\n", word, r.Namespace, r.Name, command.Plain(r.Message))
		if r.Status != nil && r.Status.Window != nil {
			fmt.Fprintf(out, "  Recovery window: %s to %s\n", r.Status.Window.Oldest.UTC().Format(time.RFC3339), r.Status.Window.Newest.UTC().Format(time.RFC3339))
		}
	}
	rows := [][]string{{"NAMESPACE", "NAME", "REGISTRY", "PHASE", "TAKEN", "REVISION", "SIZE", "VERIFIED", "FOR"}}
	for i := range l.Backups {
		rows = append(rows, cells(&l.Backups[i], now))
	}
	if len(l.Backups) > 0 {
		if len(l.Registries) > 0 {
			out.WriteString("\n")
		}
		command.Table(out, rows)
	}
	if len(l.Backups)+len(l.Registries) == 0 {
		out.WriteString("There are no ClusterRegistries and no ClusterRegistryBackups that you may see.\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func cells(b *v1alpha1.ClusterRegistryBackup, now time.Time) []string {
	status := b.Status
	taken, verified, revision := "", "", ""
	if status.TakenTime != nil {
		taken = Ago(status.TakenTime, now)
	}
	if status.VerifiedTime != nil {
		verified = Ago(status.VerifiedTime, now)
	}
	if status.Revision > 0 {
		revision = fmt.Sprint(status.Revision)
	}
	return []string{b.Namespace, b.Name, b.Spec.RegistryRef.Name, string(phase(b)), taken, revision, Size(status.Bytes), verified, reason(b)}
}
