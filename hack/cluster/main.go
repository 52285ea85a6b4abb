// Command cluster makes the Kubernetes clusters that the project is developed
// and tested on. "make cluster" and "make cluster-down" call it; README.md says how.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/local"
	"github.com/clusterregistry/operator/hack/cluster/machine"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == machine.InitCommand {
		fmt.Fprintln(os.Stderr, "machine init:", machine.Init(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	// The client library's own chatter is not for this command's users.
	logf.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// validName is what fits a kind cluster's and a folder's name.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$`)

func command() *cobra.Command {
	o := &options{out: os.Stdout}
	cmd := &cobra.Command{
		Use:           "cluster",
		Short:         "Kubernetes clusters on this computer, for development and tests",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !validName.MatchString(o.name) {
				return fmt.Errorf("--name %q: use lower-case letters, digits and dashes, at most 30", o.name)
			}
			return nil
		},
	}
	cmd.PersistentFlags().StringVar(&o.name, "name", defaultName, "name of the cluster")
	cmd.PersistentFlags().StringVar(&o.components, "components", "", "directory of the modules that pin what is built (default: hack/cluster/components of the checkout)")

	nodes := 0
	up := &cobra.Command{Use: "up", Short: "Bring a cluster up, or complete it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("nodes") {
				o.nodes = &nodes
			}
			return o.up(cmd.Context())
		}}
	up.Flags().StringVar(&o.provider, "provider", "auto", "auto, local, kind or existing (the cluster of $KUBECONFIG)")
	up.Flags().StringVar(&o.kubernetesVersion, "kubernetes-version", "", "one of "+strings.Join(components.KubernetesVersions, ", ")+" (default: the first)")
	up.Flags().IntVar(&nodes, "nodes", 0, "number of nodes (default 3); 0: a control plane alone (local provider)")
	up.Flags().StringVar(&o.beside, "beside", "", "name of the cluster on whose network a control plane without nodes is, so that its pods reach it (local provider); both go down together")
	up.Flags().StringVar(&o.subnet, "subnet", "", "IPv4 /24 of the local provider's machines (default: a free one in 10.200.0.0/16)")

	cmd.AddCommand(up,
		&cobra.Command{Use: "down", Short: "Remove a cluster without a trace", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return o.down(cmd.Context()) }},
		o.onCluster("status", "Show machines and what does not run", 0, func(ctx context.Context, p provider, _ []string) error { return p.Status(ctx) }),
		o.onCluster("load IMAGE.tar", "Bring an archive of images to every node", 1, func(ctx context.Context, p provider, args []string) error { return p.Load(ctx, args[0]) }),
		o.onCluster("logs DIR", "Gather all logs into a folder", 1, func(ctx context.Context, p provider, args []string) error { return p.Logs(ctx, args[0]) }),
		o.onCluster("stop", "End all machines at once, as a power cut does; \"up\" brings them back with their disks (local provider)", 0, func(ctx context.Context, p provider, _ []string) error {
			cluster, ok := p.(*local.Cluster)
			if !ok {
				return errors.New("only clusters of the local provider can be stopped")
			}
			return cluster.Stop(ctx)
		}),
		o.node(), o.binaries(),
		&cobra.Command{Use: "versions", Short: "Print the versions of Kubernetes that clusters can have, the default first", Args: cobra.NoArgs,
			Run: func(*cobra.Command, []string) { fmt.Fprintln(o.out, strings.Join(components.KubernetesVersions, "\n")) }})
	return cmd
}

// onCluster returns a command on a cluster that exists.
func (o *options) onCluster(use, short string, args int, run func(context.Context, provider, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args), RunE: func(cmd *cobra.Command, args []string) error {
		p, err := o.find()
		if err != nil {
			return err
		}
		return run(cmd.Context(), p, args)
	}}
}

// node returns the commands that do to a node what its owner fears.
func (o *options) node() *cobra.Command {
	node := &cobra.Command{Use: "node", Short: "Faults of a node (local provider)"}
	for _, fault := range []struct {
		name, short string
		run         func(*local.Cluster, context.Context, string) error
	}{
		{"stop", "End the node with all its pods at once, as a power cut does", (*local.Cluster).StopNode},
		{"start", "Start a stopped node with the disk it had", (*local.Cluster).StartNode},
		{"partition", "Cut the node off the network; its pods go on", (*local.Cluster).PartitionNode},
		{"heal", "End a partition", (*local.Cluster).HealNode},
		{"wipe", "Lose what is on a stopped node's volumes", (*local.Cluster).WipeNode},
	} {
		node.AddCommand(o.onCluster(fault.name+" NAME", fault.short, 1, o.onLocal(func(ctx context.Context, cluster *local.Cluster, args []string) error {
			return fault.run(cluster, ctx, args[0])
		}, fault.name)))
	}
	for _, fault := range []struct {
		name, short string
		run         func(*local.Cluster, context.Context, string, string) error
	}{
		{"empty", "Lose what is on a volume, under the pods that use it", (*local.Cluster).EmptyVolume},
		{"fill", "Leave no space on a volume that \"limit\" has limited", (*local.Cluster).FillVolume},
		{"free", "Give a volume the space back that \"fill\" took", (*local.Cluster).FreeVolume},
		{"unlimit", "Undo \"limit\", under the same conditions", (*local.Cluster).UnlimitVolume},
	} {
		node.AddCommand(o.onCluster(fault.name+" NAME VOLUME", fault.short, 2, o.onLocal(func(ctx context.Context, cluster *local.Cluster, args []string) error {
			return fault.run(cluster, ctx, args[0], args[1])
		}, fault.name)))
	}
	node.AddCommand(o.onCluster("limit NAME VOLUME MEBIBYTES", "Move a volume to a file system of its own, for pods that mount it from then on; pause what writes to it before", 3,
		o.onLocal(func(ctx context.Context, cluster *local.Cluster, args []string) error {
			return cluster.LimitVolume(ctx, args[0], args[1], args[2])
		}, "limit")))
	return node
}

// onLocal returns what runs a fault of a node, whose name is the first argument.
func (o *options) onLocal(run func(context.Context, *local.Cluster, []string) error, fault string) func(context.Context, provider, []string) error {
	return func(ctx context.Context, p provider, args []string) error {
		cluster, ok := p.(*local.Cluster)
		if !ok {
			return errors.New("node faults exist on the local provider only")
		}
		if err := run(ctx, cluster, args); err != nil {
			return err
		}
		fmt.Fprintf(o.out, "node %s: %s done\n", args[0], fault)
		return nil
	}
}

// binaries returns the command that builds programs without a cluster, for
// tests that run a bare API server.
func (o *options) binaries() *cobra.Command {
	const choices = "kubernetes, etcd, helm, versitygw, fake-gcs-server or azurite"
	catalog := map[string]func(string) components.Component{
		"kubernetes": components.Kubernetes, "etcd": components.Etcd, "helm": components.Helm,
		"versitygw": components.VersityGW, "fake-gcs-server": components.FakeGCS, "azurite": components.Azurite,
	}
	return &cobra.Command{Use: "binaries COMPONENT VERSION [PROGRAM...]", Short: "Build programs (" + choices + ") and print their folder", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			component, ok := catalog[args[0]]
			if !ok {
				return fmt.Errorf("unknown component %q; choose %s", args[0], choices)
			}
			cluster, err := options{out: os.Stderr, components: o.components}.local("")
			if err != nil {
				return err
			}
			dir, err := cluster.Builder.Ensure(cmd.Context(), component(args[1]), args[2:]...)
			if err != nil {
				return err
			}
			fmt.Println(dir)
			return nil
		}}
}
