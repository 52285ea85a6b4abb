package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/selection"
	"github.com/clusterregistry/operator/internal/contract"
)

// selectionOptions are those of the function that acts on ClusterSelections.
type selectionOptions struct {
	namespaces, sets []string

	// targets are what these say, once they are validated.
	targets []selection.Target
}

func (o *selectionOptions) on() bool { return len(o.namespaces) > 0 }

func (o *selectionOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.namespaces, "cluster-selections", nil, "Namespace of the host cluster whose ClusterSelections are acted on, as NAMESPACE or NAMESPACE:SELECTOR with a label selector of the clusters that it may see. May be repeated, with another namespace each time. Default: none.")
	fs.StringArrayVar(&o.sets, "cluster-selections-sets", nil, "ClusterSets whose clusters a namespace may see, of those that its selector selects, as NAMESPACE:NAME,NAME. May be repeated for other namespaces. Default: all clusters, in a set or not.")
}

// validate completes the options, or says what is wrong with them.
func (o *selectionOptions) validate(all *options) error {
	switch {
	case !o.on() && len(o.sets) > 0:
		return fmt.Errorf("--cluster-selections-sets means nothing without --cluster-selections")
	case !o.on():
		return nil
	case all.registryName == "" || all.namespace == "":
		return fmt.Errorf("--cluster-selections needs --registry-name and --namespace (or POD_NAMESPACE), which are the name and the namespace of the registry: ClusterSelections refer to it by them")
	}
	var err error
	if o.targets, err = selection.ParseTargets(o.namespaces, o.sets); err != nil {
		return fmt.Errorf("--cluster-selections and --cluster-selections-sets: %w", err)
	}
	return nil
}

// limit returns whether the selections of a namespace may choose a cluster; nil when no one acts on
// them.
func (o *selectionOptions) limit(namespace string) func(*v1beta1.Cluster) bool {
	at := slices.IndexFunc(o.targets, func(t selection.Target) bool { return t.Namespace == namespace })
	if at < 0 {
		return nil
	}
	return func(cluster *v1beta1.Cluster) bool {
		return o.targets[at].Shows(cluster.Spec.ClusterSet, cluster.Labels)
	}
}

// runSelections acts on ClusterSelections while this replica leads.
func (p *program) runSelections(ctx context.Context) error {
	say := p.speaker(contract.ClusterSelectionsFunction)
	say(contract.FunctionStarting, "Waiting for the clusters of the registry.")
	config := p.hostClients()
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	host, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory, clusters, err := p.watch(say)
	if err != nil {
		return err
	}
	controller, err := selection.New(selection.Config{
		Registry: p.registryName, Namespace: p.namespace, Targets: p.selections.targets, Informer: clusters,
		Objects: objects, Namespaces: host.CoreV1().Namespaces(),
		Unwatched: p.trouble.Lasting, Say: say, Clock: clock.RealClock{}, Metrics: p.metrics.selections,
	})
	if err != nil {
		return err
	}
	onceRead(ctx, factory, clusters, controller.Run)
	return nil
}
