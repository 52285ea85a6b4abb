package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/controller/export"
	"github.com/clusterregistry/operator/controller/export/argocd"
	"github.com/clusterregistry/operator/controller/export/clusterprofile"
	"github.com/clusterregistry/operator/controller/export/flux"
	"github.com/clusterregistry/operator/controller/export/format"
	kubeconfigs "github.com/clusterregistry/operator/controller/export/kubeconfig"
	"github.com/clusterregistry/operator/internal/contract"
)

// exportOptions are those of the function that publishes clusters as objects.
type exportOptions struct {
	file   string
	period time.Duration

	// targets are what the file says, once it is validated.
	targets []export.Target
}

func (o *exportOptions) on() bool { return o.file != "" }

func (o *exportOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.file, "exports-file", "", "File with what is published of clusters, where and as what: a list in JSON, as spec.controllers.exports of a ClusterRegistry has it. It is read at start. Default: nothing is published.")
	fs.DurationVar(&o.period, "exports-period", export.Period, "Time between two writes of an object that is published, at least 1s. KEP-4322 asks for 30s or more.")
}

// validate completes the options, or says what is wrong with them.
func (o *exportOptions) validate(all *options) error {
	switch {
	case !o.on():
		return nil
	case all.registryName == "" || all.namespace == "":
		return fmt.Errorf("--exports-file needs --registry-name and --namespace (or POD_NAMESPACE), which are the name and the namespace of the registry: what is published is labeled with them")
	case o.period < time.Second:
		return fmt.Errorf("--exports-period must be at least 1s")
	}
	content, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("--exports-file: %w", err)
	}
	if o.targets, err = export.ParseTargets(content, formats(format.Source{Registry: all.registryName, Namespace: all.namespace})); err != nil {
		return fmt.Errorf("--exports-file: %s: %w", o.file, err)
	}
	for i, target := range o.targets {
		if target.Selection != "" {
			o.targets[i].Limit = all.selections.limit(target.Namespace)
		}
	}
	return nil
}

// formats are those that clusters of a registry are published in, by the names that the API has
// for them.
func formats(of format.Source) map[string]format.Format {
	return map[string]format.Format{
		"ArgoCDSecret":   argocd.New(of),
		"ClusterProfile": clusterprofile.Format{Source: of},
		"FluxConfigMap":  flux.New(of),
		"Kubeconfig":     kubeconfigs.New(of),
	}
}

// runExports publishes clusters while this replica leads.
func (p *program) runExports(ctx context.Context) error {
	say := p.speaker(contract.ExportsFunction)
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
	prober := p.prober(ctx, say)
	if prober == nil {
		return nil
	}
	gap := p.inside.Gap
	if p.health {
		gap = nil // which says so
	}
	factory, clusters, err := p.watch(say)
	if err != nil {
		return err
	}
	controller, err := export.New(export.Config{
		Source:  format.Source{Registry: p.registryName, Namespace: p.namespace},
		Targets: p.exports.targets, Clusters: p.registry.ClusterregistryV1beta1().Clusters(), Informer: clusters,
		Objects: objects, Namespaces: host.CoreV1().Namespaces(), Discovery: host.Discovery(), Bindings: host.RbacV1(),
		Probe: prober.Probe, Own: p.own(),
		Unwatched: p.trouble.Lasting, Gap: gap, Say: say, Period: p.exports.period, Clock: clock.RealClock{}, Metrics: p.metrics.exports,
	})
	if err != nil {
		return err
	}
	onceRead(ctx, factory, clusters, controller.Run)
	return nil
}
