package backup

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
)

// Shown is a backup with what follows from it.
type Shown struct {
	Backup v1alpha1.ClusterRegistryBackup `json:"backup"`
	// Verdict says in a sentence what the backup is good for.
	Verdict string `json:"verdict"`
	// Attention is true when it is good for nothing, or that is not known.
	Attention bool `json:"attention,omitempty"`
	// Missing are what a restore from it would lack, and what to do about each.
	Missing []string `json:"missing,omitempty"`
}

type shower struct {
	env    *command.Env
	output command.Output
}

// NewShow returns the command backup show.
func NewShow(env *command.Env) *cobra.Command {
	s := &shower{env: env}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a backup, and what it lacks",
		Long: `Show all that the operator has reported of a backup: where it is, what it holds, whether and when
it was verified, and what a restore from it would lack.

Exits with 4 when the backup failed, is damaged, or was never verified.`,
		Example: `  # In words
  kubectl registry backup show fleet-20261123-1100

  # For a program
  kubectl registry backup show fleet-20261123-1100 -o json`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: Complete(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args[0]) },
	}
	s.output.AddFlag(cmd)
	return cmd
}

func (s *shower) run(ctx context.Context, name string) error {
	if err := s.output.Validate(); err != nil {
		return err
	}
	b, err := Find(ctx, s.env, name)
	if err != nil {
		return err
	}
	registry, err := RegistryOf(ctx, s.env, b)
	if err != nil {
		return err
	}
	shown := of(b, s.env.Now())
	shown.Missing = missing(b, registry)
	if s.output != "" {
		shown.Backup.ManagedFields = nil
		shown.Backup.SetGroupVersionKind(Kind)
		err = s.output.Print(s.env.Out, shown)
	} else {
		err = shown.print(s.env.Out, s.env.Now())
	}
	if err == nil && shown.Attention {
		return command.Shown(shown.Verdict)
	}
	return err
}

// of returns what a backup is good for.
func of(b *v1alpha1.ClusterRegistryBackup, now time.Time) *Shown {
	out, status := &Shown{Backup: *b}, b.Status
	switch phase(b) {
	case v1alpha1.BackupCompleted:
		out.Verdict = "it is in its store, and was never verified"
		if out.Attention = status.VerifiedTime == nil; !out.Attention {
			out.Verdict = "it is in its store, and was verified " + Ago(status.VerifiedTime, now)
		}
		if status.Message != "" {
			out.Verdict += "; " + status.Message
		}
	case v1alpha1.BackupSkipped:
		out.Verdict = "nothing had changed since backup " + status.Name + ", which is in its store and holds the same"
	case v1alpha1.BackupFailed:
		out.Attention, out.Verdict = true, "it failed: "+status.Message
	case v1alpha1.BackupDamaged:
		out.Attention, out.Verdict = true, "it can't be used: "+status.Message
	default:
		out.Verdict = "it is not done: " + state(b)
	}
	return out
}

// missing returns what a restore from a backup would lack.
func missing(b *v1alpha1.ClusterRegistryBackup, registry *v1alpha1.ClusterRegistry) []string {
	var out []string
	status := b.Status
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch phase(b) {
	case v1alpha1.BackupFailed, v1alpha1.BackupDamaged:
		if status.Location == "" {
			say("there is no backup in the store: take another one with \"kubectl registry backup create %s\"", b.Spec.RegistryRef.Name)
		} else {
			say("no restore should be made from it: take another one with \"kubectl registry backup create %s\"", b.Spec.RegistryRef.Name)
		}
	case v1alpha1.BackupCompleted:
		if status.VerifiedTime == nil {
			say("it was never restored on trial: have that done with \"kubectl registry backup verify %s\"", b.Name)
		}
	case v1alpha1.BackupSkipped:
	default:
		say("it can't be restored from yet")
	}
	if why := unable(b.Namespace, b.Spec.RegistryRef.Name, registry); why != "" {
		say("it can't be verified again: %s", why)
	}
	if registry != nil && registry.Spec.Server.Encryption != nil {
		say("the encryption keys are in no backup: keep those of its time (Secret %s has the present ones)", registry.Spec.Server.Encryption.SecretRef.Name)
	}
	if registry != nil && registry.Status.Backup != nil && status.Lineage != "" && registry.Status.Backup.Lineage != "" && registry.Status.Backup.Lineage != status.Lineage {
		say("it is of other data than the registry has now: of lineage %s, and the registry has %s", status.Lineage, registry.Status.Backup.Lineage)
	}
	return out
}

// print writes a backup for people: the verdict first.
func (s *Shown) print(w io.Writer, now time.Time) error {
	out, word := &strings.Builder{}, "OK"
	switch {
	case s.Attention:
		word = "ATTENTION"
	case !phase(&s.Backup).Ended():
		word = "WAIT"
	}
	fmt.Fprintf(out, "%s: backup %s/%s of registry %s: %s\n\n", word, s.Backup.Namespace, s.Backup.Name, command.Plain(s.Backup.Spec.RegistryRef.Name), command.Plain(s.Verdict))
	var rows [][]string
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + name, value})
		}
	}
	status := s.Backup.Status
	row("Taken for", reason(&s.Backup))
	row("Phase", string(phase(&s.Backup)))
	row("Taken", Moment(status.TakenTime, now))
	row("Ended", Moment(status.CompletionTime, now))
	row("Verified", Moment(status.VerifiedTime, now))
	row("Verification", s.verification())
	if status.Name != "" && status.Name != s.Backup.Name {
		row("Same as", status.Name)
	}
	row("Location", status.Location)
	row("Lineage", status.Lineage)
	if status.Revision > 0 {
		row("Revision", fmt.Sprint(status.Revision))
		row("Size", Size(status.Bytes))
	}
	row("SHA-256", status.SHA256)
	row("Release", status.Release)
	row("etcd", status.EtcdVersion)
	row("Keys", Keys(status.Keys))
	row("When deleted", deletion(&s.Backup))
	command.Table(out, rows)
	for _, lack := range s.Missing {
		fmt.Fprintf(out, "\nMissing: %s.", command.Plain(lack))
	}
	if len(s.Missing) > 0 {
		out.WriteString("\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// verification says of a request to verify again how far it is.
func (s *Shown) verification() string {
	switch asked := s.Backup.Annotations[v1alpha1.AnnotationVerify]; asked {
	case "":
		return ""
	case s.Backup.Status.VerifyRequest:
		return "the one asked for at " + asked + " is over"
	default:
		return "another one was asked for at " + asked + ", and is not over"
	}
}

// reason says for whom a backup was taken.
func reason(b *v1alpha1.ClusterRegistryBackup) string {
	switch r := v1alpha1.BackupReason(b.Annotations[v1alpha1.AnnotationBackupReason]); r {
	case v1alpha1.BackupScheduled:
		return "the schedule"
	case v1alpha1.BackupManual, "":
		return "a person"
	case v1alpha1.BackupDeletion:
		return "the deletion of the registry"
	case v1alpha1.BackupUpgrade:
		return "an upgrade"
	case v1alpha1.BackupScale:
		return "a scale-down to one member"
	default:
		return string(r)
	}
}

// deletion says what becomes of the content when the object is deleted.
func deletion(b *v1alpha1.ClusterRegistryBackup) string {
	if b.Spec.DeletionPolicy == v1alpha1.BackupDeletionPolicyDelete {
		return "the backup is deleted in its store, too"
	}
	return "the backup stays in its store until retention removes it"
}

// Moment is a time with how long ago it was, nothing when it is not known.
func Moment(t *metav1.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339) + ", " + Ago(t, now)
}

// Size returns a number of bytes for people.
func Size(n int64) string {
	const exact = 1 << 13
	switch {
	case n <= 0:
		return ""
	case n < exact:
		return fmt.Sprintf("%d bytes", n)
	case n < exact<<10:
		return resource.NewQuantity(n>>10<<10, resource.BinarySI).String()
	}
	return resource.NewQuantity(n>>20<<20, resource.BinarySI).String()
}

// Keys returns how many keys each resource has.
func Keys(all []v1alpha1.ResourceKeys) string {
	var out []string
	for _, k := range all {
		out = append(out, fmt.Sprintf("%d %s", k.Count, k.Resource))
	}
	return strings.Join(out, ", ")
}
