package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/controller/clusterprofile"
	"github.com/clusterregistry/operator/internal/contract"
)

// profileOptions are those of the function that publishes ClusterProfiles.
type profileOptions struct {
	namespaces, labels, providers []string
	period                        time.Duration

	// targets are what namespaces says, once it is validated.
	targets []clusterprofile.Target
}

func (o *profileOptions) on() bool { return len(o.namespaces) > 0 }

func (o *profileOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.namespaces, "cluster-profiles", nil, "Namespace of the host cluster to publish ClusterProfiles in, as NAMESPACE or NAMESPACE:SELECTOR with a label selector of clusters. May be repeated, with another namespace each time. Default: none are published.")
	fs.StringArrayVar(&o.labels, "cluster-profiles-labels", nil, "Labels of clusters that their ClusterProfiles in a namespace have, too, as NAMESPACE:KEY,KEY with keys, or prefixes such as example.com/*. May be repeated for other namespaces.")
	fs.StringArrayVar(&o.providers, "cluster-profiles-providers", nil, "Names of access providers that may be published in a namespace, as NAMESPACE:NAME,NAME: whoever writes an entry chooses among these which program of a client gets credentials for its address. Names that begin with argo-cd-builtin- are refused. May be repeated for other namespaces. Default: none are published.")
	fs.DurationVar(&o.period, "cluster-profiles-period", clusterprofile.Period, "Time between two writes of a ClusterProfile, at least 1s. KEP-4322 asks for 30s or more.")
}

// validate completes the options, or says what is wrong with them.
func (o *profileOptions) validate(all *options) error {
	switch {
	case !o.on() && len(o.labels)+len(o.providers) > 0:
		return fmt.Errorf("--cluster-profiles-labels and --cluster-profiles-providers mean nothing without --cluster-profiles")
	case !o.on():
		return nil
	case all.registryName == "" || all.namespace == "":
		return fmt.Errorf("--cluster-profiles needs --registry-name and --namespace (or POD_NAMESPACE), which are the name and the namespace of the registry: ClusterProfiles are labeled with them")
	case o.period < time.Second:
		return fmt.Errorf("--cluster-profiles-period must be at least 1s")
	}
	var err error
	if o.targets, err = clusterprofile.ParseTargets(o.namespaces, o.labels, o.providers); err != nil {
		return fmt.Errorf("--cluster-profiles, --cluster-profiles-labels and --cluster-profiles-providers: %w", err)
	}
	return nil
}

// runProfiles publishes ClusterProfiles while this replica leads.
func (p *program) runProfiles(ctx context.Context) error {
	say := p.speaker(contract.ClusterProfilesFunction)
	say(contract.FunctionStarting, "Waiting for the clusters of the registry.")
	config := p.hostClients()
	profiles, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	host, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	prober, err := p.prober(ctx, say)
	if err != nil {
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
	controller, err := clusterprofile.New(clusterprofile.Config{
		Source:  clusterprofile.Source{Registry: p.registryName, Namespace: p.namespace},
		Targets: p.profiles.targets, Clusters: p.registry.ClusterregistryV1beta1().Clusters(), Informer: clusters,
		Profiles: profiles, Namespaces: host.CoreV1().Namespaces(), Discovery: host.Discovery(),
		Probe: prober.Probe, Own: p.own(),
		Unwatched: p.trouble.Lasting, Gap: gap, Say: say, Period: p.profiles.period, Clock: clock.RealClock{}, Metrics: p.metrics.profiles,
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), clusters.Informer().HasSynced) {
		return nil
	}
	controller.Run(ctx)
	return nil
}
