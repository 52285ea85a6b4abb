// Package diagnose asks a host cluster what the troubleshooting page asks, and says
// what is wrong and how to resolve it: the command diagnose. It only reads, and no
// Secrets.
package diagnose

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/cli/status"
)

type diagnoser struct {
	env               *command.Env
	name              string
	operatorNamespace string
	output            command.Output
}

// New returns the command diagnose.
func New(env *command.Env) *cobra.Command {
	d := &diagnoser{env: env}
	cmd := &cobra.Command{
		Use:   "diagnose [NAME]",
		Short: "Find what is wrong with a registry, and the command for each finding",
		Long: `Find what is wrong with a ClusterRegistry, or with all of them: their conditions, pods, Jobs,
volumes and certificates, the host cluster's APIServices, the operator and cert-manager, and whether
clients reach the registry. Findings are printed worst first, each with where it is and the command that
resolves or shows it. It changes nothing and reads no Secrets. What you may not list is named as not
checked.

Exits with 4 when there are findings.`,
		Example: `  # All registries of the host cluster
  kubectl registry diagnose

  # One of them, for a program
  kubectl registry diagnose fleet -n registries -o json`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.name = strings.Join(args, "")
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&d.operatorNamespace, "operator-namespace", "clusterregistry-system", "the `namespace` of the operator")
	d.output.AddFlag(cmd)
	return cmd
}

func (d *diagnoser) run(ctx context.Context) error {
	if err := d.output.Validate(); err != nil {
		return err
	}
	report, err := d.diagnose(ctx)
	if err != nil {
		return err
	}
	if d.output != "" {
		err = d.output.Print(d.env.Out, report)
	} else {
		err = report.print(d.env.Out)
	}
	if err == nil && len(report.Findings) > 0 {
		// For people, the verdict is the first line already.
		if err = command.Shown(report.Verdict); d.output != "" {
			err = command.Attentionf("%s", report.Verdict)
		}
	}
	return err
}

// diagnosis is one run: what is read, and what was found so far.
type diagnosis struct {
	*diagnoser
	*Report
	host dynamic.Interface
}

// diagnose asks everything there is to ask. The error is about the command line, or a
// host cluster that does not answer at all.
func (d *diagnoser) diagnose(ctx context.Context) (*Report, error) {
	stop := d.env.Progress(ctx, "Asking the host cluster and the registry")
	defer stop()
	host, err := d.env.Host()
	if err != nil {
		return nil, err
	}
	run := &diagnosis{diagnoser: d, Report: &Report{Findings: []status.Problem{}}, host: host}
	registries, err := run.registries(ctx)
	if err != nil {
		return nil, err
	}
	for i := range registries {
		run.registry(ctx, &registries[i])
	}
	run.operator(ctx)
	run.certManager(ctx)
	run.apiServices(ctx, registries)
	run.served(ctx, registries)
	run.conclude(len(registries))
	return run.Report, nil
}

// registries returns the ClusterRegistries that are asked about. Where they may not be
// listed it is what the command line names, without a spec and status.
func (d *diagnosis) registries(ctx context.Context) ([]operatorv1alpha1.ClusterRegistry, error) {
	all, _, err := hostcluster.List(ctx, d.host, d.env.Namespace())
	var dial *net.OpError
	switch {
	case err == nil && d.name == "":
		return all, nil
	case err == nil:
		one, err := hostcluster.Pick(d.env, all, d.name)
		if err != nil {
			return nil, err
		}
		return []operatorv1alpha1.ClusterRegistry{*one}, nil
	case apierrors.IsUnauthorized(err), errors.As(err, &dial), ctx.Err() != nil:
		return nil, d.env.Explain("list the ClusterRegistries", command.OfHost, err)
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		d.add(status.Critical, "host cluster", "docs/how-to/install.md; with --context, name another host cluster", "it has no ClusterRegistries: the operator's CRD is not installed, or this is the context of an independent registry")
	case d.name == "" || d.env.Namespace() == "":
		d.unchecked("ClusterRegistries, and so nothing that belongs to one; with a NAME and -n that is checked all the same", hostcluster.Resource, d.env.Namespace(), err)
	default:
		d.unchecked("ClusterRegistries", hostcluster.Resource, d.env.Namespace(), err)
	}
	if d.name == "" || d.env.Namespace() == "" {
		return nil, nil
	}
	return []operatorv1alpha1.ClusterRegistry{{ObjectMeta: metav1.ObjectMeta{Namespace: d.env.Namespace(), Name: d.name}}}, nil
}

// notable are the reasons of conditions that are true and still worth a finding.
var notable = []string{
	operatorv1alpha1.ReasonOOMKilled, operatorv1alpha1.ReasonCAExpiring, operatorv1alpha1.ReasonCAReplaced, operatorv1alpha1.ReasonShortLifetime, operatorv1alpha1.ReasonVolumesDiffer, operatorv1alpha1.ReasonMembersShareNode,
}

// registry finds what is wrong with one ClusterRegistry.
func (d *diagnosis) registry(ctx context.Context, creg *operatorv1alpha1.ClusterRegistry) {
	if known(creg) {
		d.conditions(creg)
	}
	warnings := d.warnings(ctx, creg.Namespace)
	d.happened(creg, warnings)
	d.workloads(ctx, creg, warnings)
	d.certificates(ctx, creg)
	d.endpoint(ctx, creg)
}

// conditions finds what a ClusterRegistry says of itself: what status shows, the other
// conditions that are not true for a reason of their own, and those that are true with
// a reservation.
func (d *diagnosis) conditions(creg *operatorv1alpha1.ClusterRegistry) {
	_, problems := status.Of(creg, d.env.Now())
	d.Findings = append(d.Findings, problems...)
	object := registryName(creg)
	next := func(reason string) string { return status.Next(creg, reason) }
	for _, kind := range slices.Concat(status.Parts, []string{operatorv1alpha1.ConditionProgressing}) {
		condition := meta.FindStatusCondition(creg.Status.Conditions, kind)
		if condition == nil {
			continue
		}
		said := condition.Reason + ": " + command.Plain(condition.Message)
		if slices.ContainsFunc(problems, func(p status.Problem) bool { return strings.HasSuffix(p.Message, ": "+said) }) {
			continue
		}
		switch {
		case kind == operatorv1alpha1.ConditionProgressing:
			switch condition.Reason {
			case operatorv1alpha1.ReasonSnapshotFailed, operatorv1alpha1.ReasonUpgradeBlocked:
				d.add(status.Error, object, next(condition.Reason), "the upgrade does not continue: %s", said)
			case operatorv1alpha1.ReasonDeleting:
				d.add(status.Warning, object, next(condition.Reason), "what its deletion waits for: %s", said)
			}
		case condition.Status == metav1.ConditionTrue:
			if slices.Contains(notable, condition.Reason) {
				d.add(status.Warning, object, next(condition.Reason), "%s: %s", kind, said)
			}
		case condition.Reason != operatorv1alpha1.ReasonWaiting && condition.Reason != operatorv1alpha1.ReasonProgressing:
			d.add(status.SeverityOf(condition.Reason), object, next(condition.Reason), "%s is %s: %s", kind, condition.Status, said)
		}
	}
	if creg.Spec.Paused {
		d.add(status.Warning, object, "kubectl -n "+creg.Namespace+" patch creg "+creg.Name+` --type=merge -p '{"spec":{"paused":false}}'`, "it is paused: the operator changes and repairs nothing")
	}
}

// known reports whether a ClusterRegistry could be read. The host cluster stores none
// without a version.
func known(creg *operatorv1alpha1.ClusterRegistry) bool { return creg.Spec.Version != "" }

func registryName(creg *operatorv1alpha1.ClusterRegistry) string {
	return "registry " + creg.Namespace + "/" + creg.Name
}
