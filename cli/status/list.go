package status

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

// The forms that only a list has, as kubectl has them.
const (
	wide  = "wide"
	names = "name"
)

// list lists the clusters.
func (g *grouper) list(ctx context.Context) error {
	registry, err := g.env.Registry()
	if err != nil {
		return err
	}
	stop := g.env.Progress(ctx, "Listing the clusters")
	list := v1beta1.ClusterList{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "ClusterList"}, Items: []v1beta1.Cluster{}}
	list.ResourceVersion, err = command.EachCluster(ctx, registry.ClusterregistryV1beta1().Clusters(), g.selector, func(cluster *v1beta1.Cluster) { list.Items = append(list.Items, *command.Bare(cluster)) })
	stop()
	if err != nil {
		return g.env.Explain("list the clusters", command.OfRegistry, err)
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	switch g.output {
	case names:
		return printNames(g.env.Out, list.Items)
	case "", wide:
		if len(list.Items) == 0 {
			fmt.Fprintln(g.env.ErrOut, "No clusters found.")
			return nil
		}
		command.Table(g.env.Out, table(list.Items, g.env.Now(), g.output == wide, anyUnprobed(ctx, g.env)))
		return nil
	}
	return g.output.Print(g.env.Out, list)
}

// printNames prints the clusters as kubectl takes them.
func printNames(w io.Writer, clusters []v1beta1.Cluster) error {
	for i := range clusters {
		if _, err := fmt.Fprintf(w, "cluster.%s/%s\n", v1beta1.SchemeGroupVersion.Group, command.Plain(clusters[i].Name)); err != nil {
			return err
		}
	}
	return nil
}

// table returns the clusters in rows.
func table(clusters []v1beta1.Cluster, now time.Time, wide, unprobed bool) [][]string {
	head := []string{"NAME", "AVAILABLE", "REASON", "VERSION", "SET", "AGE"}
	if wide {
		head = append(head, "ENDPOINT", "LABELS")
	}
	rows := [][]string{head}
	for i := range clusters {
		c := &clusters[i]
		state, why := State(c)
		reason, version := "", ""
		if why != nil && state != string(metav1.ConditionTrue) {
			reason = why.Reason
		}
		if unprobed && state != "" && state != IdentityDiffers {
			state, reason = "unknown", "LeaderLost"
		}
		if c.Status != nil {
			version = c.Status.Version.Kubernetes
		}
		row := []string{c.Name, state, reason, version, c.Spec.ClusterSet, age(now, c.CreationTimestamp)}
		if wide {
			row = append(row, address(c), labels(c.Labels))
		}
		rows = append(rows, row)
	}
	return rows
}

// address returns where a cluster is, and how many other endpoints it has.
func address(c *v1beta1.Cluster) string {
	switch n := len(c.Spec.Endpoints); n {
	case 0:
		return ""
	case 1:
		return c.Spec.Endpoints[0].URL
	default:
		return fmt.Sprintf("%s (and %d more)", c.Spec.Endpoints[0].URL, n-1)
	}
}

// labels returns labels in the order of their keys, without that which the column SET has.
func labels(all map[string]string) string {
	rest := maps.Clone(all)
	delete(rest, v1beta1.ClusterSetLabel)
	return k8slabels.Set(rest).String()
}
