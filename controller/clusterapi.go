package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/controller/clusterapi"
	"github.com/clusterregistry/operator/controller/labelkeys"
	"github.com/clusterregistry/operator/internal/contract"
)

// clusterAPIOptions are those of the function that brings clusters of Cluster API into the
// registry.
type clusterAPIOptions struct {
	on                     bool
	namespaces, labels     []string
	selectorText, template string
	grantsFile             string
	policy                 string
	grace, period          time.Duration

	// What the texts above say, once they are validated.
	selector labels.Selector
	name     clusterapi.Template
	copied   labelkeys.AllowList
	grants   clusterapi.Grants
}

func (o *clusterAPIOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.on, "cluster-api", false, "Bring clusters of Cluster API (cluster.x-k8s.io/v1beta2) in the host cluster into the registry.")
	fs.StringSliceVar(&o.namespaces, "cluster-api-namespaces", nil, "Namespaces of the host cluster whose clusters are read, separated by commas. Each but --namespace must have the label registry.clusterregistry.io/NAME, for the name of the registry, with its namespace as the value.")
	fs.StringVar(&o.selectorText, "cluster-api-selector", "", "Selector of labels that a cluster or its namespace must have; if both have a label, that of the cluster counts. Default: all, except those with the label clusterregistry.k8s.io/ignore=true.")
	fs.StringVar(&o.template, "cluster-api-name-template", "{name}", "Name that a cluster gets in the registry, of {namespace} and {name}.")
	fs.StringSliceVar(&o.labels, "cluster-api-labels", nil, "Labels of clusters that are copied to the registry, separated by commas: keys, or all with a prefix as example.com/*. Default: none.")
	fs.StringVar(&o.grantsFile, "cluster-api-grants-file", "", "File in JSON with accessTemplates and clusterSets, as in spec.controllers.clusterAPI of a ClusterRegistry, read at start. Default: none.")
	fs.StringVar(&o.policy, "cluster-api-deletion-policy", string(clusterapi.PolicyRetain), "What happens to the entry of a cluster that is deleted or no longer selected: Retain or Delete.")
	fs.DurationVar(&o.grace, "cluster-api-grace-period", time.Hour, "Time until Delete deletes the entry.")
	fs.DurationVar(&o.period, "cluster-api-period", 30*time.Second, "Time between two checks of the labels of namespaces and of Cluster API, at least 1s.")
}

// validate completes the options, or says what is wrong with them.
func (o *clusterAPIOptions) validate(all *options) error {
	if !o.on {
		if len(o.namespaces) > 0 {
			return fmt.Errorf("--cluster-api-namespaces means nothing without --cluster-api")
		}
		return nil
	}
	switch policy := clusterapi.DeletionPolicy(o.policy); {
	case len(o.namespaces) == 0:
		return fmt.Errorf("--cluster-api-namespaces is not set: name the namespaces whose clusters are read")
	case all.namespace == "" || all.registryName == "":
		return fmt.Errorf("--registry-name and --namespace (or POD_NAMESPACE) must be set with --cluster-api: namespaces let the registry in by them")
	case policy != clusterapi.PolicyRetain && policy != clusterapi.PolicyDelete:
		return fmt.Errorf("--cluster-api-deletion-policy is %q: set Retain or Delete", policy)
	case o.grace < 0:
		return fmt.Errorf("--cluster-api-grace-period must not be negative")
	case o.period < time.Second:
		return fmt.Errorf("--cluster-api-period must be at least 1s")
	}
	if faults := validation.IsDNS1123Label(all.registryName); len(faults) > 0 {
		return fmt.Errorf("--registry-name %q is not the name of a registry: %s", all.registryName, faults[0])
	}
	for i, namespace := range o.namespaces {
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			return fmt.Errorf("--cluster-api-namespaces has %q, which is not the name of a namespace: %s", namespace, faults[0])
		}
		if slices.Contains(o.namespaces[:i], namespace) {
			return fmt.Errorf("--cluster-api-namespaces has %q twice", namespace)
		}
	}
	var err error
	if o.selector, err = labels.Parse(o.selectorText); err != nil {
		return fmt.Errorf("--cluster-api-selector: %w", err)
	}
	if o.name, err = clusterapi.ParseTemplate(o.template); err != nil {
		return fmt.Errorf("--cluster-api-name-template: %w", err)
	}
	if o.copied, err = clusterapi.ParseAllowList(o.labels); err != nil {
		return fmt.Errorf("--cluster-api-labels: %w", err)
	}
	if o.grantsFile == "" {
		return nil
	}
	content, err := os.ReadFile(o.grantsFile)
	if err != nil {
		return fmt.Errorf("--cluster-api-grants-file: %w", err)
	}
	if o.grants, err = clusterapi.ParseGrants(content); err != nil {
		return fmt.Errorf("--cluster-api-grants-file: %s: %w", o.grantsFile, err)
	}
	return nil
}

// runClusterAPI runs that function while this replica leads.
func (p *program) runClusterAPI(ctx context.Context) error {
	say := p.speaker(contract.ClusterAPIFunction)
	say(contract.FunctionStarting, "")
	factory, clusters, err := p.watch(say)
	if err != nil {
		return err
	}
	config := p.hostClients()
	source, err := clusterapi.NewSource(config)
	if err != nil {
		return err
	}
	host, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	controller, err := clusterapi.New(clusterapi.Config{
		Source: source, Host: host, Clusters: p.registry.ClusterregistryV1beta1().Clusters(), Informer: clusters,
		Registry: p.registryName, Namespace: p.namespace, Namespaces: p.clusterAPI.namespaces,
		Selector: p.clusterAPI.selector, Name: p.clusterAPI.name, Labels: p.clusterAPI.copied, Grants: p.clusterAPI.grants,
		Policy: clusterapi.DeletionPolicy(p.clusterAPI.policy), Grace: p.clusterAPI.grace, Period: p.clusterAPI.period,
		Unwatched: p.trouble.Lasting, Say: say, Clock: clock.RealClock{}, Metrics: p.metrics.api,
	})
	if err != nil {
		return err
	}
	onceRead(ctx, factory, clusters, controller.Run)
	return nil
}
