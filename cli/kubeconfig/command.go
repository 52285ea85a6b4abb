// Package kubeconfig makes one kubeconfig of the clusters in a registry: the command
// kubeconfig. Entries are untrusted: anyone who may write a Cluster chooses a server
// that credentials are sent to and a program that is run on every laptop.
package kubeconfig

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/cli/command"
)

// builder is one run of the command.
type builder struct {
	env       *command.Env
	names     []string
	selector  string
	all       bool
	merge     string
	client    string
	prefix    string
	allowExec []string
	accept    string
	dryRun    command.DryRun
	// registry returns the mark of the registry: its address and CA.
	registry func() (mark, error)
}

// defaultFile stands for the file that kubectl writes.
const defaultFile = "default"

// New returns the command kubeconfig.
func New(env *command.Env) *cobra.Command {
	b := &builder{env: env, registry: func() (mark, error) {
		config, err := env.Flags.ToRESTConfig()
		if err != nil {
			return mark{}, fmt.Errorf("find the registry's kubeconfig: %w; name a file with --kubeconfig and a context with --context", err)
		}
		return markOf(config)
	}}
	return b.command()
}

func (b *builder) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubeconfig [NAME... | --selector LABELS | --all]",
		Short: "Make a kubeconfig of the clusters in the registry",
		Long: `Make one kubeconfig of the clusters in the registry, so that "kubectl --context east get ns" works.

Whoever may write a Cluster chooses where you send credentials and which program you run. So only
known plugins are run (aws, gke-gcloud-auth-plugin, Azure's kubelogin, kubectl oidc-login), with
arguments that are rebuilt from what is understood of the entry; others need --allow-exec. Each new
entry, and each change of a server, CA, proxy or program, is shown and has to be confirmed, or
accepted in a script by the digest that was shown. No credentials are written.

Exits with 3 when nothing was confirmed, and with 4 when some entries were refused.`,
		Example: `  # Merge all clusters into ~/.kube/config; remove those that have left the registry
  kubectl registry kubeconfig --all --merge

  # Two clusters, as a client in 10.1.0.0/16 reaches them, to a file of their own
  kubectl registry kubeconfig east west --for 10.1.2.3 --merge=fleet.kubeconfig

  # In a script, after a person has checked what was shown
  kubectl registry kubeconfig --selector env=production --merge --accept=sha256:...`,
		ValidArgsFunction: b.env.CompleteClusters(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.names = args
			if cmd.Flags().Changed("merge") && b.merge == "" {
				return command.Usagef("--merge= names no file: leave out the = for that which \"kubectl config\" writes")
			}
			return b.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&b.selector, "selector", "l", "", "the clusters with these `labels`")
	f.BoolVar(&b.all, "all", false, "all clusters")
	f.StringVar(&b.merge, "merge", "", "merge into a `file` instead of printing; without one, into that which \"kubectl config\" writes")
	f.Lookup("merge").NoOptDefVal = defaultFile
	f.StringVar(&b.client, "for", "", "`address` that you reach clusters from, which chooses among their endpoints; default: endpoints for any client")
	f.StringVar(&b.prefix, "prefix", "", "begin the names of contexts with this `text`")
	f.StringArrayVar(&b.allowExec, "allow-exec", nil, "also run this `command` of entries, which is not in the built-in table, with the entry's arguments but not its environment")
	f.StringVar(&b.accept, "accept", "", "accept what has this `digest`, as it was shown before, without asking")
	b.dryRun.AddLocalFlag(cmd, "only shows what would be confirmed and changed, with its digest")
	return cmd
}
