// Package join enters clusters in a registry and removes them: the commands join and
// unjoin.
package join

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/member"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// joiner is one run of join.
type joiner struct {
	env *command.Env
	// name is the cluster's in the registry.
	name string
	// context and kubeconfig are where the cluster is found.
	context, kubeconfig string
	// server takes the place of the context's address.
	server      string
	endpoint    string
	clientCIDRs []string
	labels      map[string]string
	displayName string
	set         string
	// id takes the place of what the cluster says.
	id         string
	withAccess bool
	yes        bool
	dryRun     command.DryRun
	output     command.Output

	// ask returns what the cluster says of itself, see [member.Member.Ask].
	ask func(ctx context.Context, m *member.Member, server string) (member.Facts, error)
}

// NewJoin returns the command join.
func NewJoin(env *command.Env) *cobra.Command {
	j := &joiner{env: env, ask: func(ctx context.Context, m *member.Member, server string) (member.Facts, error) {
		return m.Ask(ctx, server)
	}}
	return j.command()
}

func (j *joiner) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "join NAME --cluster-context CONTEXT",
		Short: "Enter a cluster in the registry",
		Long: `Enter a cluster in the registry, from a context of a kubeconfig.

The context says where the cluster is: server, CA, tls-server-name and proxy-url. The cluster
itself is asked for its identity, the UID of its namespace kube-system, and its version. Two
clusters that were restored from one backup of etcd, or cloned, have one UID: give the second
one an id of its own with --id.
Credentials are never copied. Joining a cluster again updates its endpoint and does no harm;
another cluster under the name, and the same cluster under another name, are refused.`,
		Example: `  # The cluster of the context east, in the registry of the current context
  kubectl registry join east --cluster-context east --label region=eu

  # The registry in another context; see first what would be written
  kubectl registry --context hub join east --cluster-context east --dry-run=client -o yaml

  # A cluster that this computer reaches through a tunnel, and others by its name
  kubectl registry join lab --cluster-context lab --server https://lab.example.com:6443`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: j.env.CompleteClusters(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.name = args[0]
			return j.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&j.context, "cluster-context", "", "`context` of the cluster that joins")
	f.StringVar(&j.kubeconfig, "cluster-kubeconfig", "", "`file` with that context; default: that of --kubeconfig, $KUBECONFIG or ~/.kube/config")
	f.StringVar(&j.server, "server", "", "https `URL` that clients reach the cluster at, in place of the context's; the cluster is asked there, too, with the context's credentials, and entered as not verified if it is not reached there")
	f.StringVar(&j.endpoint, "endpoint", "main", "`name` of the endpoint to enter or update; others stay")
	f.StringSliceVar(&j.clientCIDRs, "client-cidr", nil, "`ranges` of client addresses that the endpoint is for; default: any client")
	f.StringToStringVar(&j.labels, "label", nil, "labels to set, as `key=value`")
	f.StringVar(&j.displayName, "display-name", "", "what people call the cluster")
	f.StringVar(&j.set, "cluster-set", "", "`name` of the ClusterSet to put the cluster in; it must exist")
	f.StringVar(&j.id, "id", "", "`identity` to enter, for a cluster that has the same UID as another one; default: the UID of its namespace kube-system")
	f.BoolVar(&j.withAccess, "with-access", false, "also enter the program with which the context's user gets credentials, without variables that look like secrets; it is shown first")
	f.BoolVar(&j.yes, "yes", false, "enter that program without asking")
	j.dryRun.AddFlag(cmd)
	j.output.AddFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("cluster-context", command.CompleteContexts(&j.kubeconfig, j.env.Flags.KubeConfig))
	return cmd
}

func (j *joiner) run(ctx context.Context) error {
	if err := j.dryRun.Validate(); err != nil {
		return err
	}
	if err := j.output.Validate(); err != nil {
		return err
	}
	if j.context == "" {
		return command.Usagef("--cluster-context is missing: name the context of the cluster that joins, as \"kubectl config get-contexts\" lists them")
	}
	found, err := member.Load(j.env.Kubeconfig(j.kubeconfig), j.context)
	if err != nil {
		return err
	}
	wanted, err := j.wanted(found)
	if err != nil {
		return err
	}
	stop := j.env.Progress(ctx, "Asking the cluster of context "+command.Plain(j.context)+" who it is")
	facts, err := j.ask(ctx, found, "")
	verified := err == nil
	if verified && j.server != "" {
		verified, err = j.answers(ctx, found, wanted.Spec.Endpoints[0].URL, facts)
	}
	stop()
	if err != nil {
		return err
	}
	wanted.Spec.ID = cmp.Or(j.id, facts.ID)
	registry, err := j.env.Registry()
	if err != nil {
		return err
	}
	clusters := registry.ClusterregistryV1beta1().Clusters()
	old, err := j.admit(ctx, clusters, wanted)
	if err != nil {
		return err
	}
	if err := command.Validate(merged(wanted, old)); err != nil {
		return err
	}
	fmt.Fprintf(j.env.ErrOut, "Entering %q in the registry of context %s\n", j.name, command.Plain(j.env.Context()))
	if err := j.showAccess(ctx, wanted); err != nil {
		return err
	}
	made, did, err := j.write(ctx, clusters, wanted, old)
	if err != nil {
		return err
	}
	if made.Spec.ClusterSet != cmp.Or(j.set, made.Spec.ClusterSet) {
		return fmt.Errorf("the cluster %q is in the registry, and not in ClusterSet %q: the registry has no ClusterSets", j.name, command.Plain(j.set))
	}
	if !j.dryRun.Client() && j.dryRun != "server" {
		made = j.report(ctx, clusters, made, facts, verified)
	}
	if j.output != "" {
		return j.output.Print(j.env.Out, command.Bare(made))
	}
	fmt.Fprintf(j.env.Out, "cluster.clusterregistry.k8s.io/%s %s%s\n", made.Name, did, j.dryRun.Suffix())
	return nil
}

// wanted returns what the context says, as a Cluster without identity.
func (j *joiner) wanted(found *member.Member) (*v1beta1.Cluster, error) {
	endpoint, err := found.Endpoint(j.endpoint, j.server)
	if err != nil {
		return nil, err
	}
	endpoint.ClientCIDRs = j.clientCIDRs
	if member.Local(endpoint.ProxyURL) {
		fmt.Fprintf(j.env.ErrOut, "note: the proxy %s is on each computer itself: others need one there too\n", command.Plain(endpoint.ProxyURL))
	}
	out := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: j.name, Labels: j.labels}, Spec: v1beta1.ClusterSpec{DisplayName: j.displayName, ClusterSet: j.set, Endpoints: []v1beta1.Endpoint{endpoint}}}
	if !j.withAccess {
		return out, nil
	}
	access, err := accessOf(found)
	if err != nil {
		return nil, err
	}
	out.Spec.Access = []v1beta1.Access{access}
	return out, nil
}

// admit returns the cluster that has the name, nil for none, or why the one that
// joins may not have it.
func (j *joiner) admit(ctx context.Context, clusters clusterclient.ClusterInterface, wanted *v1beta1.Cluster) (*v1beta1.Cluster, error) {
	if wanted.Spec.ID == "" {
		return nil, command.Refusedf("the namespace kube-system of the cluster of context %q has no UID, so the cluster can't be told from others: it is not a Kubernetes API server as others are; choose an id with --id", command.Plain(j.context))
	}
	stop := j.env.Progress(ctx, "Reading the registry's clusters")
	defer stop()
	list, err := clusters.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, j.env.Explain("list the registry's clusters", command.OfRegistry, err)
	}
	var old, holder *v1beta1.Cluster
	for i := range list.Items {
		switch item := &list.Items[i]; {
		case item.Name == wanted.Name:
			old = item
		case item.Spec.ID == wanted.Spec.ID:
			holder = item
		}
	}
	if holder != nil {
		return nil, j.taken(holder, old)
	}
	if old == nil || old.Spec.ID == wanted.Spec.ID {
		return old, nil
	}
	if old.Spec.ID != "" {
		return nil, command.Refusedf("the name %q belongs to another cluster: in the registry it is %s, at %s, and the cluster of context %q has id %s; choose another name, or if %q is gone, remove it with \"kubectl registry unjoin %s\" first",
			j.name, command.ID(old), addresses(old), command.Plain(j.context), command.Plain(wanted.Spec.ID), j.name, j.name)
	}
	for _, endpoint := range old.Spec.Endpoints {
		if strings.TrimSuffix(endpoint.URL, "/") == wanted.Spec.Endpoints[0].URL {
			return old, nil
		}
	}
	if len(old.Spec.Endpoints) == 0 {
		return old, nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"id": wanted.Spec.ID}})
	if err != nil {
		return nil, err
	}
	return nil, command.Refusedf("the registry has a cluster %q without an id, at %s, and whether it is that of context %q, at %s, is not known: choose another name, or if it is the same, set its id with kubectl patch crc %s --type=merge -p %s first",
		j.name, addresses(old), command.Plain(j.context), wanted.Spec.Endpoints[0].URL, command.Quote(j.name), command.Quote(string(patch)))
}

// taken refuses a cluster whose id another entry has: it is that cluster, or was made from the
// same data. The old entry has the name of the one that joins, and is nil for none.
func (j *joiner) taken(holder, old *v1beta1.Cluster) error {
	if j.id != "" {
		return command.Refusedf("the id %q is that of %q in the registry, at %s: choose another one", command.Plain(j.id), holder.Name, addresses(holder))
	}
	own := "ID"
	if old != nil && old.Spec.ID != "" {
		own = command.Quote(old.Spec.ID)
	}
	return command.Refusedf("the cluster of context %q is in the registry already, as %q (%s), at %s, and can't join as %q too: join it as %q, or remove that with \"kubectl registry unjoin %s\" first. If it is another cluster, which was restored from the same backup of etcd or cloned, join it as %q with --id=%s, an id of its own",
		command.Plain(j.context), holder.Name, command.ID(holder), addresses(holder), j.name, holder.Name, holder.Name, j.name, own)
}

// addresses returns the URLs of a cluster for a message.
func addresses(cluster *v1beta1.Cluster) string {
	var out []string
	for _, endpoint := range cluster.Spec.Endpoints {
		if endpoint.URL != "" {
			out = append(out, command.Plain(endpoint.URL))
		}
	}
	if len(out) == 0 {
		return "no known address"
	}
	return strings.Join(out, ", ")
}

// write creates or updates the cluster, and says which of them it did.
func (j *joiner) write(ctx context.Context, clusters clusterclient.ClusterInterface, wanted, old *v1beta1.Cluster) (*v1beta1.Cluster, string, error) {
	if old == nil {
		if j.dryRun.Client() {
			return wanted, "created", nil
		}
		made, err := clusters.Create(ctx, wanted, metav1.CreateOptions{FieldManager: command.FieldManager, DryRun: j.dryRun.Options()})
		if apierrors.IsAlreadyExists(err) {
			return nil, "", fmt.Errorf("someone else has entered %q just now: see \"kubectl get crc %s\", then join again", j.name, j.name)
		}
		return made, "created", j.env.Explain("create the cluster "+j.name, command.OfRegistry, err)
	}
	next := merged(wanted, old)
	if equality.DeepEqual(next, old) {
		return old, "unchanged", nil
	}
	for _, before := range old.Spec.Endpoints {
		if after := wanted.Spec.Endpoints[0]; before.Name == after.Name && before.URL != after.URL {
			fmt.Fprintf(j.env.ErrOut, "endpoint %s: %s -> %s\n", command.Plain(before.Name), command.Plain(before.URL), after.URL)
		}
	}
	if j.dryRun.Client() {
		return next, "configured", nil
	}
	made, err := command.Update(ctx, clusters, old, next, metav1.UpdateOptions{FieldManager: command.FieldManager, DryRun: j.dryRun.Options()})
	if errors.Is(err, command.ErrChanged) {
		return nil, "", fmt.Errorf("someone else has changed the cluster %q at the same time: join it again", j.name)
	}
	return made, "configured", j.env.Explain("update the cluster "+j.name, command.OfRegistry, err)
}
