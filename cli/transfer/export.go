// Package transfer writes the clusters of a registry to a file and reads them from one,
// or from what other projects keep them in: the commands export and import.
package transfer

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

// list is what export writes: what "kubectl apply -f" takes, too.
type list struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []item `json:"items"`
}

// item is a cluster or a ClusterSet without what a server sets.
type item struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Metadata   metadata               `json:"metadata"`
	Spec       any                    `json:"spec"`
	Status     *v1beta1.ClusterStatus `json:"status,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// lastApplied is where "kubectl apply" keeps what it sent.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// itemOf returns a cluster as it is exported.
func itemOf(cluster *v1beta1.Cluster, withStatus bool) item {
	spec := *cluster.Spec.DeepCopy()
	out := item{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster",
		Metadata: metadata{Name: cluster.Name, Labels: withoutLabel(cluster.Labels), Annotations: withoutApplied(cluster.Annotations)}, Spec: spec,
	}
	if withStatus {
		out.Status = portable(cluster.Status, cluster.Generation)
	}
	return out
}

type exporter struct {
	env        *command.Env
	selector   string
	withStatus bool
	output     command.Output
}

// NewExport returns the command export.
func NewExport(env *command.Env) *cobra.Command {
	e := &exporter{env: env, output: "yaml"}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the clusters of the registry to a file",
		Long: `Write the clusters of the registry to the standard output, as one file: names, labels, annotations
and specs, without what a server sets, and before them the ClusterSets that they are in. "import" reads it, and so does "kubectl apply -f".`,
		Example: `  # All clusters
  kubectl registry export > clusters.yaml

  # From one registry to another
  kubectl registry export --context old --with-status | kubectl registry import --context new --with-status -f -`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&e.selector, "selector", "l", "", "export only clusters with these `labels`")
	cmd.Flags().BoolVar(&e.withStatus, "with-status", false, "also what controllers have reported")
	e.output.AddFlag(cmd)
	cmd.Flags().Lookup("output").DefValue = "yaml"
	e.output = "yaml"
	return cmd
}

func (e *exporter) run(ctx context.Context) error {
	if err := e.output.Validate(); err != nil {
		return err
	}
	registry, err := e.env.Registry()
	if err != nil {
		return err
	}
	stop := e.env.Progress(ctx, "Reading the registry's clusters")
	found, err := registry.ClusterregistryV1beta1().Clusters().List(ctx, metav1.ListOptions{LabelSelector: e.selector})
	stop()
	if err != nil {
		return e.env.Explain("list the clusters", command.OfRegistry, err)
	}
	sets, err := setsOf(ctx, registry.ClusterregistryV1beta1().ClusterSets(), found.Items)
	if err != nil {
		return e.env.Explain("read the ClusterSets that the clusters are in", command.OfRegistry, err)
	}
	out := list{APIVersion: "v1", Kind: "List", Items: append([]item{}, sets...)}
	for i := range found.Items {
		out.Items = append(out.Items, itemOf(&found.Items[i], e.withStatus))
	}
	if err := e.output.Print(e.env.Out, out); err != nil {
		return fmt.Errorf("write the clusters: %w", err)
	}
	return nil
}
