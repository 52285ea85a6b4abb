package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

type importer struct {
	env              *command.Env
	file             string
	from, kubeconfig string
	overwrite        bool
	withStatus       bool
	dryRun           command.DryRun
	output           command.Output
	// template makes the names that clusters get.
	template string
	// workers is how many clusters are entered at a time.
	workers int
	// listed are the clusters of the registry, nil where each is asked for.
	listed map[string]*v1beta1.Cluster
	// pause is the time between two attempts to enter a cluster whose id another request
	// holds, and held how long they are made.
	pause, held time.Duration
	read        func(ctx context.Context, kubeconfig, name string) ([]*unstructured.Unstructured, error)
}

// workers are as many as a registry answers at once without another one having to wait: most of
// the time of a write is that of etcd's disk.
const workers = 8

// NewImport returns the command import.
func NewImport(env *command.Env) *cobra.Command {
	i := &importer{env: env, workers: workers, pause: 5 * time.Second, held: held, read: readContext}
	return i.command()
}

func (i *importer) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import -f FILE | --from-context CONTEXT",
		Short: "Enter clusters from a file or another cluster in the registry",
		Long: `Enter clusters in the registry: from a file that "export" has written, or from objects of other
projects, in a file or in the cluster of another context: Clusters of cluster-registry v0.0.4
(v1alpha1) and of the CRD of v0.0.5 and v0.0.6, KubeFedClusters, and Clusters of Cluster API.
ClusterSets are entered first.

Each entry is reported: created, same, differs, or refused with the reason. A cluster that is in the
registry and differs stays as it is unless --overwrite is set. It can be run again at any time: what
is done is then the same. Exits with 4 when entries differ or were refused.`,
		Example: `  # From a file; see first what would happen
  kubectl registry import -f clusters.yaml --dry-run=server
  kubectl registry import -f clusters.yaml

  # From the clusters of Cluster API in another cluster, named by their namespace as well
  kubectl registry import --from-context management --name-template '{namespace}-{name}'`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return i.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVarP(&i.file, "filename", "f", "", "`file` to read, - for the standard input")
	f.StringVar(&i.from, "from-context", "", "`context` of a cluster to read from")
	f.StringVar(&i.kubeconfig, "from-kubeconfig", "", "`file` with that context; default: that of --kubeconfig, $KUBECONFIG or ~/.kube/config")
	f.BoolVar(&i.overwrite, "overwrite", false, "replace labels, annotations and spec of clusters that differ")
	f.BoolVar(&i.withStatus, "with-status", false, "also write the status that the file has, of clusters that are created or updated")
	f.StringVar(&i.template, "name-template", placeOfName, "`template` of the names that clusters get, of {namespace} and {name}")
	i.dryRun.AddFlag(cmd)
	i.output.AddFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("from-context", command.CompleteContexts(&i.kubeconfig, i.env.Flags.KubeConfig))
	return cmd
}

func (i *importer) run(ctx context.Context) error {
	if err := errors.Join(i.dryRun.Validate(), i.output.Validate(), checkTemplate(i.template)); err != nil {
		return err
	}
	if (i.file == "") == (i.from == "") {
		return command.Usagef("name either a file with -f or a context with --from-context")
	}
	var objects []*unstructured.Unstructured
	var err error
	if i.file != "" {
		objects, err = readFile(i.file, i.env.In)
	} else {
		objects, err = i.read(ctx, i.env.Kubeconfig(i.kubeconfig), i.from)
	}
	if err != nil {
		return err
	}
	objects = setsFirst(objects)
	if len(objects) == 0 {
		return command.Refusedf("%s has no clusters: nothing was imported; check that it is the one that you mean", i.source())
	}
	registry, err := i.env.Registry()
	if err != nil {
		return err
	}
	fmt.Fprintf(i.env.ErrOut, "Entering %s in the registry of context %s\n", count(objects), command.Plain(i.env.Context()))
	all, stopped := i.enter(ctx, registry.ClusterregistryV1beta1(), objects)
	did := results(all)
	outcome := i.outcome(all, did, stopped)
	printed := i.report(did)
	switch {
	case printed == nil:
		return outcome
	case outcome == nil:
		return fmt.Errorf("all %d entries are done, and the report is not printed: %w", len(did), printed)
	}
	// What needs attention is not shown: this has failed.
	return fmt.Errorf("%s; the report is not printed: %w", outcome.Error(), printed)
}

// outcome returns where the import has stopped, or that entries need attention.
func (i *importer) outcome(all []*plan, did []Result, stopped error) error {
	attention := unfinished(did)
	if stopped != nil {
		at := max(0, slices.IndexFunc(all, func(p *plan) bool { return !p.done }))
		return fmt.Errorf("stopped at entry %d of %d, %s: %w; %d entries are done, %d differ or were refused, and running this again continues",
			at+1, len(all), nameOf(all[at].object), i.env.Explain("enter it", command.OfRegistry, stopped), len(did)-attention, attention)
	}
	if attention > 0 {
		return command.Attentionf("%d of %d entries differ or were refused", attention, len(did))
	}
	return nil
}

// source names where clusters are read from.
func (i *importer) source() string {
	switch {
	case i.from != "":
		return fmt.Sprintf("the cluster of context %q", command.Plain(i.from))
	case i.file == "-":
		return "the standard input"
	}
	return "the file " + command.Plain(i.file)
}

// count says how many objects there are.
func count(objects []*unstructured.Unstructured) string {
	sets := 0
	for _, object := range objects {
		if isSet(object) {
			sets++
		}
	}
	clusters := plural(len(objects)-sets, "cluster")
	if sets == 0 {
		return clusters
	}
	return plural(sets, "ClusterSet") + " and " + clusters
}

func plural(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}
