// Package kubeconfig makes one kubeconfig of the clusters in a registry: the command
// kubeconfig. Entries are untrusted: anyone who may write a Cluster chooses a server
// that credentials are sent to and a program that is run on every laptop.
package kubeconfig

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
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
	dryRun    bool
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

// markOf returns the mark of the registry that a configuration leads to.
func markOf(config *rest.Config) (mark, error) {
	loaded := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: config.CAFile, CAData: config.CAData}}
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return mark{}, fmt.Errorf("read the registry's CA: %w; correct certificate-authority in the kubeconfig", err)
	}
	out := mark{Registry: config.Host}
	if len(loaded.CAData) > 0 {
		out.CA = fmt.Sprintf("sha256:%x", sha256.Sum256(loaded.CAData))
	}
	return out, nil
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
	f.BoolVar(&b.dryRun, "dry-run", false, "only show what would be confirmed and changed, with its digest")
	return cmd
}

func (b *builder) run(ctx context.Context) error {
	client, err := b.check()
	if err != nil {
		return err
	}
	clusters, complete, err := b.list(ctx)
	if err != nil {
		return err
	}
	origin, err := b.registry()
	if err != nil {
		return err
	}
	origin.Scope = scopeOf(b.names, b.selector)
	entries, refused := b.entries(clusters, client)
	named := b.merge
	if named == defaultFile {
		named = clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	}
	path := ""
	if named != "" {
		path = target(named)
	}
	planned := func() (*clientcmdapi.Config, plan, error) {
		config, others, err := read(path)
		if err != nil {
			return nil, plan{}, err
		}
		return config, makePlan(config, others, entries, refused, origin, complete && path != ""), nil
	}
	config, plan, err := planned()
	if err != nil {
		return err
	}
	plan.show(b.env.ErrOut)
	agreed, err := plan.digest(origin)
	if err != nil {
		return err
	}
	if b.dryRun {
		fmt.Fprintf(b.env.ErrOut, "digest of what is to be confirmed: %s\n", agreed)
		return plan.verdict("")
	}
	if err := b.confirm(ctx, plan, agreed); err != nil {
		return err
	}
	if path == "" {
		return b.print(config, plan, origin)
	}
	unlock, err := lock(ctx, named, path)
	if err != nil {
		return err
	}
	defer unlock()
	// What a person has agreed to is for the file that they were shown.
	config, plan, err = planned()
	if err != nil {
		return err
	}
	if now, err := plan.digest(origin); err != nil || now != agreed {
		return command.Refusedf("the file %s was changed in the meantime: nothing was written; run this again", path)
	}
	if err := plan.apply(config, origin); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return command.Refusedf("interrupted: nothing was changed")
	}
	if err := save(path, config); err != nil {
		return err
	}
	fmt.Fprintf(b.env.Out, "%s: %d new or changed, %d unchanged, %d removed\n", path, len(plan.changes), len(plan.same), len(plan.pruned))
	return plan.verdict(othersDone)
}

// entries returns the entries of clusters, and those that get none.
func (b *builder) entries(clusters []v1beta1.Cluster, client netip.Addr) (entries []entry, refused []refusal) {
	for i := range clusters {
		made, err := newEntry(&clusters[i], b.prefix, client, b.allowExec)
		if err != nil {
			refused = append(refused, refusal{clusters[i].Name, err.Error()})
			continue
		}
		entries = append(entries, made)
	}
	return entries, refused
}

// check returns the client's address, or what is wrong with the command line.
func (b *builder) check() (netip.Addr, error) {
	chosen := 0
	for _, is := range []bool{len(b.names) > 0, b.selector != "", b.all} {
		if is {
			chosen++
		}
	}
	if chosen != 1 {
		return netip.Addr{}, command.Usagef("choose clusters by name, with --selector or with --all, and in one way only")
	}
	for _, name := range b.names {
		if b.merge == defaultFile && strings.ContainsAny(name, `/\`) {
			return netip.Addr{}, command.Usagef("%s is taken for the name of a cluster: to merge into a file of this name, write --merge=%s", command.Plain(name), command.Plain(name))
		}
	}
	for _, known := range plugins {
		if slices.Contains(b.allowExec, known.command) {
			fmt.Fprintf(b.env.ErrOut, "note: --allow-exec=%s lets entries run %s with any arguments, and not only as a plugin: read each one\n", known.command, known.command)
		}
	}
	if b.client == "" {
		return netip.Addr{}, nil
	}
	client, err := netip.ParseAddr(b.client)
	if err != nil {
		return netip.Addr{}, command.Usagef("--for=%s is not an IP address: name the one that you reach clusters from, such as 10.1.2.3", command.Plain(b.client))
	}
	return client, nil
}

// list returns the chosen clusters, and whether they are all that the choice can have.
func (b *builder) list(ctx context.Context) ([]v1beta1.Cluster, bool, error) {
	registry, err := b.env.Registry()
	if err != nil {
		return nil, false, err
	}
	stop := b.env.Progress(ctx, "Reading the registry's clusters")
	defer stop()
	clusters := registry.ClusterregistryV1beta1().Clusters()
	if len(b.names) == 0 {
		list, err := clusters.List(ctx, metav1.ListOptions{LabelSelector: b.selector})
		if err != nil {
			return nil, false, b.env.Explain("list the clusters", command.OfRegistry, err)
		}
		return list.Items, list.Continue == "", nil
	}
	var out []v1beta1.Cluster
	names := slices.Clone(b.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && b.merge == defaultFile {
			err = fmt.Errorf("%w; if that is the file to merge into, write --merge=%s", err, command.Plain(name))
		}
		if err != nil {
			return nil, false, b.env.Explain("read the cluster "+command.Plain(name), command.OfRegistry, err)
		}
		out = append(out, *cluster)
	}
	return out, false, nil
}

// confirm returns nil when a person has agreed to the changes.
func (b *builder) confirm(ctx context.Context, p plan, agreed string) error {
	switch {
	case !p.asks():
		// A script that runs again with the digest of before has nothing to confirm.
		return nil
	case b.accept != "" && b.accept != agreed:
		return command.Refusedf("what is to be confirmed has the digest %s, and --accept has %s: nothing was changed; check what is shown above, then use that digest", agreed, command.Plain(b.accept))
	case b.accept != "":
		return nil
	}
	return b.env.Confirm(ctx, p.question(), "--accept="+agreed)
}

// print writes the kubeconfig to the standard output.
func (b *builder) print(config *clientcmdapi.Config, p plan, origin mark) error {
	if err := p.apply(config, origin); err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if _, err := b.env.Out.Write(content); err != nil {
		return err
	}
	return p.verdict(othersDone)
}

// othersDone says what became of the clusters that were not refused.
const othersDone = "; the others are done"

// verdict is an error when clusters were refused, which ends with what became of the
// others.
func (p plan) verdict(others string) error {
	if len(p.refused) == 0 {
		return nil
	}
	return command.Attentionf("%d refused, see above%s", len(p.refused), others)
}
