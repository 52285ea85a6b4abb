package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// Group are the clusters with one value of a label.
type Group struct {
	// Value is the label's, empty for clusters without it.
	Value     string `json:"value"`
	Clusters  int    `json:"clusters"`
	Available int    `json:"available"`
	// Unknown are those of which it is not known, since nothing probes them.
	Unknown int `json:"unknown,omitempty"`
	// Versions are how many clusters run which minor version of Kubernetes; those that
	// no one has reported are not in it.
	Versions map[string]int `json:"versions,omitempty"`
	// OldestVersion is the oldest version of Kubernetes in the group.
	OldestVersion string `json:"oldestVersion,omitempty"`
	// OldestVersionCluster is one that runs it.
	OldestVersionCluster string `json:"oldestVersionCluster,omitempty"`
	// OldestEntry is when the first of the clusters joined.
	OldestEntry metav1.Time `json:"oldestEntry"`
}

type grouper struct {
	env             *command.Env
	label, selector string
	output          command.Output
}

// NewClusters returns the command clusters.
func NewClusters(env *command.Env) *cobra.Command {
	g := &grouper{env: env}
	cmd := &cobra.Command{
		Use:   "clusters [--by LABEL]",
		Short: "List the clusters, or count them by a label",
		Long: `List the clusters of the registry, with how they are and what they run; or, with --by, count them by
the values of a label: how many are available, which versions of Kubernetes they run, and which of
them runs the oldest.`,
		Example: `  # All clusters, with their addresses and labels
  kubectl registry clusters -o wide

  # How many there are in each region
  kubectl registry clusters --by region

  # The names of the production clusters, for a script
  kubectl registry clusters --selector env=production -o jsonpath='{.items[*].metadata.name}'`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&g.label, "by", "", "count the clusters by this `label`; default: list them")
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "only clusters with these `labels`")
	g.output.AddFlag(cmd, wide, names)
	return cmd
}

func (g *grouper) run(ctx context.Context) error {
	if err := g.output.Validate(wide, names); err != nil {
		return err
	}
	if g.label == "" {
		return g.list(ctx)
	}
	if g.output == wide || g.output == names {
		return command.Usagef("--output=%s: it is for a list, and --by counts: leave one of them out", g.output)
	}
	registry, err := g.env.Registry()
	if err != nil {
		return err
	}
	stop := g.env.Progress(ctx, "Listing the clusters")
	groups, unprobed := map[string]*Group{}, anyUnprobed(ctx, g.env)
	_, err = command.EachCluster(ctx, registry.ClusterregistryV1beta1().Clusters(), g.selector, func(cluster *v1beta1.Cluster) { count(groups, cluster, g.label, unprobed) })
	stop()
	if err != nil {
		return g.env.Explain("list the clusters", command.OfRegistry, err)
	}
	if g.output != "" {
		return g.output.Print(g.env.Out, sorted(groups))
	}
	rows := [][]string{{strings.ToUpper(g.label), "CLUSTERS", "AVAILABLE", "VERSIONS", "OLDEST VERSION", "OLDEST ENTRY"}}
	for _, group := range sorted(groups) {
		value := group.Value
		if value == "" {
			value = "<none>"
		}
		available := fmt.Sprintf("%d/%d", group.Available, group.Clusters)
		if unprobed {
			available = "unknown (LeaderLost)"
		}
		rows = append(rows, []string{value, fmt.Sprint(group.Clusters), available, versions(group.Versions), oldest(group), age(g.env.Now(), group.OldestEntry)})
	}
	command.Table(g.env.Out, rows)
	return nil
}

// anyUnprobed reports whether the host cluster of the context says that nothing probes the
// clusters. A context without ClusterRegistries, or one that may not list them, says nothing.
func anyUnprobed(ctx context.Context, env *command.Env) bool {
	host, err := env.Host()
	if err != nil {
		return false
	}
	all, _, err := hostcluster.List(ctx, host, env.Namespace())
	return err == nil && slices.ContainsFunc(all, func(creg operatorv1alpha1.ClusterRegistry) bool { return Unprobed(&creg) })
}

// count adds a cluster to the group of its value of a label.
func count(groups map[string]*Group, cluster *v1beta1.Cluster, label string, unprobed bool) {
	value := cluster.Labels[label]
	g := groups[value]
	if g == nil {
		g = &Group{Value: value, Versions: map[string]int{}, OldestEntry: cluster.CreationTimestamp}
		groups[value] = g
	}
	g.Clusters++
	switch state, _ := availability(cluster); {
	case state != "" && unprobed:
		g.Unknown++
	case state == string(metav1.ConditionTrue):
		g.Available++
	}
	if cluster.CreationTimestamp.Before(&g.OldestEntry) {
		g.OldestEntry = cluster.CreationTimestamp
	}
	if cluster.Status == nil || !semver.IsValid(cluster.Status.Version.Kubernetes) {
		return
	}
	version := cluster.Status.Version.Kubernetes
	g.Versions[semver.MajorMinor(version)]++
	if g.OldestVersion == "" || semver.Compare(version, g.OldestVersion) < 0 {
		g.OldestVersion, g.OldestVersionCluster = version, cluster.Name
	}
}

// sorted returns groups by their values; that of clusters without the label last.
func sorted(groups map[string]*Group) []Group {
	out := []Group{}
	for _, value := range slices.Sorted(maps.Keys(groups)) {
		if value != "" {
			out = append(out, *groups[value])
		}
	}
	if without := groups[""]; without != nil {
		out = append(out, *without)
	}
	return out
}

// versions returns how many clusters run which version, the newest first.
func versions(counts map[string]int) string {
	keys := slices.Collect(maps.Keys(counts))
	slices.SortFunc(keys, func(a, b string) int { return semver.Compare(b, a) })
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%s (%d)", key, counts[key])
	}
	return strings.Join(keys, ", ")
}

func oldest(group Group) string {
	if group.OldestVersion == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", group.OldestVersion, group.OldestVersionCluster)
}

func age(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(then.Time))
}
