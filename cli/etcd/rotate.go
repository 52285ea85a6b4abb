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

// The CAs of a registry, as spec.tls.rotation names them.
const (
	caEtcd    = "etcd"
	caServing = "serving"
	caClient  = "client"
)

// authorities are the CAs that can be rotated.
var authorities = []string{caEtcd, caServing, caClient}

// NewRotate returns the command etcd rotate-ca.
func NewRotate(env *command.Env) *cobra.Command {
	c := &change{env: env}
	cmd := &cobra.Command{
		Use:   "rotate-ca etcd|serving|client [REGISTRY]",
		Short: "Give a CA of a registry a new key",
		Long: `Have the operator make a new CA with a key of its own, and let it take the place of the present one:
etcd signs the certificates of etcd members and of what asks them, serving those of the servers, and
client those of an independent registry's users. The plan is shown first, and has to be confirmed. It
can't be taken back: no key is used again.

It raises spec.tls.rotation.CA by one. Keep that number where the registry's manifest is kept.`,
		Example: `  # Show what would happen, and ask
  kubectl registry etcd rotate-ca serving fleet

  # Let the host cluster check it, and change nothing
  kubectl registry etcd rotate-ca client fleet --dry-run=server`,
		Args: command.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return slices.DeleteFunc(slices.Clone(authorities), func(ca string) bool { return !strings.HasPrefix(ca, begun) }), cobra.ShellCompDirectiveNoFileComp
			}
			return hostcluster.Complete(env)(cmd, args[1:], begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.rotate(cmd.Context(), args[0], strings.Join(args[1:], ""))
		},
	}
	c.addFlags(cmd)
	return cmd
}

func (c *change) rotate(ctx context.Context, ca, name string) error {
	if err := c.dryRun.Validate(); err != nil {
		return err
	}
	if !slices.Contains(authorities, ca) {
		return command.Usagef("there is no CA %q that can be rotated: there are %s", command.Plain(ca), strings.Join(authorities, " and "))
	}
	registry, err := hostcluster.Find(ctx, c.env, name)
	if err != nil {
		return err
	}
	p, err := rotatePlan(registry, ca)
	if err != nil {
		return err
	}
	return c.carryOut(ctx, registry, p)
}

// rotatePlan returns what a rotation does, or why it is refused.
func rotatePlan(registry *v1alpha1.ClusterRegistry, ca string) (plan, error) {
	where := registry.Namespace + "/" + registry.Name
	independent := registry.Spec.Mode == v1alpha1.ModeIndependent
	present, dropped := generations(registry.Spec.TLS.Rotation, ca)
	from, instead := present, lost(registry, ca, present)
	switch {
	case ca == caEtcd && registry.Spec.Etcd.External != nil:
		return plan{}, own(registry)
	case ca == caServing && registry.Spec.TLS.IssuerRef != nil:
		return plan{}, command.Refusedf("the issuer in spec.tls.issuerRef signs the servers' certificates of %s, and has no CA of the registry's to rotate", where)
	case ca == caClient && !independent:
		return plan{}, command.Refusedf("%s is a part of its host cluster's API, and has no CA of clients: it is the host cluster's", where)
	case instead:
		// No generation is dropped, nor the rotation complete, before another one is made.
		from = signing(registry, ca)
	case ca != caEtcd && independent && dropped < present-1:
		return plan{}, command.Refusedf("the %s CA of generation %d of %s is not dropped yet, and two generations are trusted at most: set spec.tls.rotation.drop.%s to %d when no one needs it any more", ca, present-1, where, ca, present-1)
	case signing(registry, ca) != 0 && signing(registry, ca) < present:
		return plan{}, command.Refusedf("the rotation of the %s CA of %s to generation %d is under way: see \"kubectl registry status %s\"", ca, where, present, registry.Name)
	}
	next := present + 1
	rotation := map[string]any{ca: next}
	p := plan{does: fmt.Sprintf("rotate the %s CA, from generation %d to %d", ca, from, next),
		patch: map[string]any{"spec": map[string]any{"tls": map[string]any{"rotation": rotation}}}, sets: fmt.Sprintf("spec.tls.rotation.%s=%d, which can't be lowered", ca, next)}
	p.steps = []string{"cert-manager issues a new CA with a key of its own"}
	if instead {
		p.steps[0] += fmt.Sprintf(", in the place of generation %d, whose key is lost: if there is a backup of Secret %s-%s-ca-%d, restore that instead", present, registry.Name, ca, present)
	}
	if instead && ca == caServing && dropped >= from {
		rotation["drop"] = map[string]any{ca: nil}
		p.sets += ", and removes spec.tls.rotation.drop.serving, since no client has the new CA yet"
	}
	drop := fmt.Sprintf("set spec.tls.rotation.drop.%s to %d", ca, present)
	switch {
	case ca == caEtcd:
		p.steps = append(p.steps, "etcd members and servers are replaced, one at a time, by such as trust both CAs", "the certificates are issued by the new one, and seen to be shown",
			"members and servers are replaced again, one at a time, by such as trust the new CA alone", "the previous CA is deleted")
		if len(registry.Status.Etcd.Members) == 1 {
			p.notices = []string{"the registry is not available for some seconds, twice, while its only etcd member is replaced"}
		}
	case ca == caClient:
		p.steps = append(p.steps, "the servers accept certificates of both CAs", "the administrator's certificate is issued by the new one",
			"the operator stops there: issue users' certificates again, and "+drop+", with which the previous CA is accepted no more")
		p.notices = []string{"with drop, those who have a certificate of the previous CA can't sign in any more"}
	case independent:
		p.steps = append(p.steps, "both CAs are published, in the kubeconfig's Secret and status.endpoint.caBundle",
			"the operator stops there: give that to clients again, and "+drop, "the servers show certificates of the new CA, and the previous one is dropped")
		p.notices = []string{"with drop, those who trust a copy of the previous CA alone don't reach the registry any more"}
	default:
		p.steps = append(p.steps, "both CAs are published in the APIService", "the servers show certificates of the new CA", "the previous CA is dropped")
	}
	return p, nil
}

// generations returns the generation of a CA that the spec asks for, and the newest that it
// drops.
func generations(r v1alpha1.Rotation, ca string) (present, dropped int32) {
	switch ca {
	case caEtcd:
		return max(r.Etcd, 1), 0
	case caClient:
		return max(r.Client, 1), r.Drop.Client
	}
	return max(r.Serving, 1), r.Drop.Serving
}

// signing returns the newest generation of a CA that signs, zero when it is not known.
func signing(registry *v1alpha1.ClusterRegistry, ca string) int32 {
	var newest int32
	prefix := registry.Name + "-" + ca + "-ca"
	for _, c := range registry.Status.Certificates {
		if (c.Name == prefix || strings.HasPrefix(c.Name, prefix+"-")) && c.Use == v1alpha1.CASigning {
			newest = max(newest, c.Generation)
		}
	}
	return newest
}

// lost reports whether a generation of a CA was to sign next, and its key is lost: the status has
// its Certificate then, and no use of it.
func lost(registry *v1alpha1.ClusterRegistry, ca string, next int32) bool {
	name := fmt.Sprintf("%s-%s-ca-%d", registry.Name, ca, next)
	signs := signing(registry, ca)
	return ca != caEtcd && registry.Spec.Mode == v1alpha1.ModeIndependent && signs != 0 && signs < next &&
		slices.ContainsFunc(registry.Status.Certificates, func(c v1alpha1.CertificateStatus) bool { return c.Name == name && c.Use == "" })
}
