package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// The results of an entry.
const (
	created = "created"
	same    = "same"
	differs = "differs"
	updated = "updated"
	refused = "refused"
)

// Result is what became of an entry.
type Result struct {
	// From is the object that was read.
	From string `json:"from"`
	// Name is the cluster's in the registry.
	Name string `json:"name,omitempty"`
	// Result is created, same, differs, updated or refused.
	Result string `json:"result"`
	// Message says why, or what to do.
	Message string `json:"message,omitempty"`
}

type importer struct {
	env              *command.Env
	file             string
	from, kubeconfig string
	overwrite        bool
	withStatus       bool
	dryRun           command.DryRun
	output           command.Output
	// pause is the time between two attempts to enter a cluster whose id another request
	// holds, and held how long they are made.
	pause, held time.Duration
	read        func(ctx context.Context, kubeconfig, name string) ([]*unstructured.Unstructured, error)
}

// NewImport returns the command import.
func NewImport(env *command.Env) *cobra.Command {
	i := &importer{env: env, pause: 5 * time.Second, held: held, read: readContext}
	return i.command()
}

func (i *importer) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import -f FILE | --from-context CONTEXT",
		Short: "Enter clusters from a file or another cluster in the registry",
		Long: `Enter clusters in the registry: from a file that "export" has written, or from objects of other
projects, in a file or in the cluster of another context: Clusters of cluster-registry v0.0.4
(v1alpha1) and of the CRD of v0.0.5 and v0.0.6, KubeFedClusters, and Clusters of Cluster API.

Each entry is reported: created, same, differs, or refused with the reason. A cluster that is in the
registry and differs stays as it is unless --overwrite is set. It can be run again at any time: what
is done is then the same. Exits with 4 when entries differ or were refused.`,
		Example: `  # From a file; see first what would happen
  kubectl registry import -f clusters.yaml --dry-run=server
  kubectl registry import -f clusters.yaml

  # From the clusters of KubeFed in another cluster
  kubectl registry import --from-context kubefed-host`,
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
	i.dryRun.AddFlag(cmd)
	i.output.AddFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("from-context", command.CompleteContexts(&i.kubeconfig, i.env.Flags.KubeConfig))
	return cmd
}

func (i *importer) run(ctx context.Context) error {
	if err := errors.Join(i.dryRun.Validate(), i.output.Validate()); err != nil {
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
	if len(objects) == 0 {
		return command.Refusedf("%s has no clusters: nothing was imported; check that it is the one that you mean", i.source())
	}
	registry, err := i.env.Registry()
	if err != nil {
		return err
	}
	fmt.Fprintf(i.env.ErrOut, "Entering %s in the registry of context %s\n", plural(len(objects)), command.Plain(i.env.Context()))
	results, stopped := i.enter(ctx, registry.ClusterregistryV1beta1().Clusters(), objects)
	if err := i.report(results); err != nil {
		return err
	}
	if stopped != nil {
		return fmt.Errorf("stopped at entry %d of %d, %s: %w; of the %d before %d are done, and running this again continues", len(results)+1, len(objects), nameOf(objects[len(results)]), i.env.Explain("enter it", command.OfRegistry, stopped), len(results), len(results)-unfinished(results))
	}
	attention := unfinished(results)
	if attention > 0 {
		return command.Attentionf("%d of %d entries differ or were refused", attention, len(results))
	}
	return nil
}

func plural(count int) string {
	if count == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", count)
}

// unfinished counts the entries that differ or were refused.
func unfinished(results []Result) int {
	count := 0
	for _, result := range results {
		if result.Result == differs || result.Result == refused {
			count++
		}
	}
	return count
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

// enter enters objects one after the other. It ends early, with the results so far,
// only when the registry can't be asked any more.
func (i *importer) enter(ctx context.Context, clusters clusterclient.ClusterInterface, objects []*unstructured.Unstructured) ([]Result, error) {
	stop := i.env.Progress(ctx, fmt.Sprintf("Entering %s", plural(len(objects))))
	defer stop()
	results := []Result{}
	taken, ids := map[string]string{}, map[string]string{}
	for _, object := range objects {
		entry := entryOf(object)
		result := Result{From: entry.from, Message: entry.note}
		if entry.cluster != nil {
			result.Name = command.Plain(entry.cluster.Name)
			if other := taken[entry.cluster.Name]; other != "" && entry.err == nil {
				entry.err = fmt.Errorf("the name is taken by %s of the same source: rename one of them", other)
			}
			if other := ids[entry.cluster.Spec.ID]; other != "" && entry.err == nil {
				entry.err = fmt.Errorf("its id is that of %s of the same source: it is one cluster with two names; remove one of them", other)
			}
		}
		if entry.err != nil {
			result.Result, result.Message = refused, command.Plain(entry.err.Error())
			results = append(results, result)
			continue
		}
		taken[entry.cluster.Name] = entry.from
		if id := entry.cluster.Spec.ID; id != "" {
			ids[id] = entry.from
		}
		did, err := i.one(ctx, clusters, entry.cluster)
		switch {
		case err != nil && fatal(ctx, err):
			return results, err
		case err != nil:
			result.Result, result.Message = refused, command.Plain(err.Error())
		default:
			result.Result = did
			if did == differs {
				result.Message = "it is in the registry with other labels, annotations or spec: compare with \"kubectl get crc " + result.Name + " -o yaml\", then use --overwrite"
			}
		}
		results = append(results, result)
	}
	return results, nil
}

// fatal reports whether an error is about the registry, and not about one entry.
func fatal(ctx context.Context, err error) bool {
	var dial net.Error
	var request *url.Error
	return ctx.Err() != nil || errors.As(err, &dial) || errors.As(err, &request) || apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// one enters one cluster, and says what it did.
func (i *importer) one(ctx context.Context, clusters clusterclient.ClusterInterface, wanted *v1beta1.Cluster) (string, error) {
	status := wanted.Status
	wanted.Status = nil
	old, err := clusters.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !missing(err) {
		if i.dryRun.Client() {
			return created, nil
		}
		made, err := i.waiting(ctx, func() (*v1beta1.Cluster, error) {
			return clusters.Create(ctx, wanted, metav1.CreateOptions{FieldManager: command.FieldManager, DryRun: i.dryRun.Options()})
		})
		if err != nil {
			return "", err
		}
		return created, i.status(ctx, clusters, made, status)
	}
	if err != nil {
		return "", err
	}
	// What an export leaves out, and what registries up to v0.3.0 don't have.
	v1beta1.SetObjectDefaults_Cluster(old)
	v1beta1.SetObjectDefaults_Cluster(wanted)
	if sameObject(old.Spec.SourceRef, wanted.Spec.SourceRef) {
		wanted.Spec.SourceRef = old.Spec.SourceRef // which the registry lets no one change
	}
	next := old.DeepCopy()
	next.Labels, next.Annotations, next.Spec = wanted.Labels, wanted.Annotations, wanted.Spec
	if before, is := old.Annotations[lastApplied]; is {
		next.Annotations = map[string]string{lastApplied: before}
		for key, value := range wanted.Annotations {
			next.Annotations[key] = value
		}
	}
	if apiequality.Semantic.DeepEqual(next, old) {
		if old.Status == nil && status != nil && i.withStatus {
			// An import that ended before it has written the status.
			return updated, i.status(ctx, clusters, old, status)
		}
		return same, nil
	}
	if !i.overwrite {
		return differs, nil
	}
	if i.dryRun.Client() {
		return updated, nil
	}
	made, err := i.waiting(ctx, func() (*v1beta1.Cluster, error) {
		return command.Update(ctx, clusters, old, next, metav1.UpdateOptions{FieldManager: command.FieldManager, DryRun: i.dryRun.Options()})
	})
	if errors.Is(err, command.ErrChanged) {
		return "", fmt.Errorf("%w, and stays as it is now: see \"kubectl get crc %s -o yaml\", then run this again", err, old.Name)
	}
	if err != nil {
		return "", err
	}
	return updated, i.status(ctx, clusters, made, status)
}

// held is how long a registry keeps an id for a request that was cut off, such as the last
// one of an import that was killed, and a little more.
const held = 130 * time.Second

// waiting writes a cluster. It waits while another request holds the cluster's id.
func (i *importer) waiting(ctx context.Context, write func() (*v1beta1.Cluster, error)) (*v1beta1.Cluster, error) {
	for waited := time.Duration(0); ; waited += i.pause {
		made, err := write()
		if !apierrors.IsConflict(err) || waited >= i.held {
			return made, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(i.pause):
		}
	}
}

// missing reports whether an error says that the registry's API is not there, and not
// that a cluster isn't.
func missing(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Name == ""
}

// status writes the status that a file has, where it is to be written.
func (i *importer) status(ctx context.Context, clusters clusterclient.ClusterInterface, made *v1beta1.Cluster, status *v1beta1.ClusterStatus) error {
	if status == nil || !i.withStatus || i.dryRun != "none" {
		return nil
	}
	if _, err := command.UpdateStatus(ctx, clusters, made, func(next *v1beta1.Cluster) { next.Status = status }); err != nil {
		return fmt.Errorf("the cluster was entered, and its status was not: %w", err)
	}
	return nil
}

// report prints what became of each entry.
func (i *importer) report(results []Result) error {
	if i.output != "" {
		return i.output.Print(i.env.Out, results)
	}
	columns := tabwriter.NewWriter(i.env.Out, 0, 0, 3, ' ', 0)
	_, _ = io.WriteString(columns, "FROM\tCLUSTER\tRESULT"+i.dryRun.Suffix()+"\tMESSAGE\n")
	for _, result := range results {
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", result.From, result.Name, result.Result, result.Message)
	}
	return columns.Flush()
}
