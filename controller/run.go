package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/client/informers"
	clusterinformers "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/announce"
	"github.com/clusterregistry/operator/controller/clusterapi"
	"github.com/clusterregistry/operator/controller/export"
	"github.com/clusterregistry/operator/controller/feed"
	"github.com/clusterregistry/operator/controller/health"
	"github.com/clusterregistry/operator/controller/hostentry"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/controller/ranges"
	"github.com/clusterregistry/operator/controller/selection"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// program is the controller as it runs.
type program struct {
	*options
	host       kubernetes.Interface
	hostConfig *rest.Config
	// address is the URL of the host cluster's API server.
	address   string
	registry  versioned.Interface
	trouble   *health.Trouble
	announcer *announce.Announcer
	registrar *hostentry.Registrar
	// inside knows the ranges of the host cluster, for all functions: known makes it, and
	// following has it read them again.
	inside           *ranges.Host
	known, following sync.Once
	metrics          struct {
		health     *health.Metrics
		api        *clusterapi.Metrics
		exports    *export.Metrics
		feed       *feed.Metrics
		selections *selection.Metrics
	}
}

// run runs the controller until ctx ends.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	hostConfig, err := connection(o.hostKubeconfig)
	if err != nil {
		return fmt.Errorf("connect to the host cluster: %w; outside of a pod, --host-kubeconfig names the way", err)
	}
	p := &program{options: o, hostConfig: hostConfig, address: hostConfig.Host, trouble: health.NewTrouble(clock.RealClock{})}
	if p.host, err = kubernetes.NewForConfig(hostConfig); err != nil {
		return err
	}
	registryConfig, err := p.registryConfig(hostConfig)
	if err != nil {
		return err
	}
	if p.registry, err = versioned.NewForConfig(registryConfig); err != nil {
		return err
	}
	mgr, err := p.manager(hostConfig)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// registryConfig leads to the registry: through the host cluster unless a kubeconfig is
// given. Certificates and CAs in files that this one names are read again when they change.
func (p *program) registryConfig(host *rest.Config) (*rest.Config, error) {
	config := rest.CopyConfig(host)
	if p.kubeconfig != "" {
		var err error
		if config, err = connection(p.kubeconfig); err != nil {
			return nil, fmt.Errorf("connect to the registry: --kubeconfig: %w", err)
		}
	}
	config.QPS, config.Burst = 50, 100
	config.Wrap(unregistered.Wrap)
	config.Wrap(p.trouble.Wrap)
	return config, nil
}

// connection is that of a kubeconfig, or the pod's own.
func connection(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// manager returns what elects the leader, and runs the functions while it leads.
func (p *program) manager(hostConfig *rest.Config) (manager.Manager, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	identity := name + "_" + string(uuid.NewUUID())
	options := ctrl.Options{
		Metrics:                       metricsserver.Options{BindAddress: p.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		HealthProbeBindAddress:        p.probeAddress,
		LeaderElection:                p.leaderElect,
		LeaderElectionReleaseOnCancel: true,
	}
	p.announcer = announce.New(nil, p.lease, identity, clock.RealClock{})
	if p.leaderElect {
		options.LeaderElectionResourceLockInterface, err = resourcelock.New(resourcelock.LeasesResourceLock, p.namespace, p.lease,
			p.host.CoreV1(), p.host.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
		if err != nil {
			return nil, err
		}
		p.announcer = announce.New(p.host.CoordinationV1().Leases(p.namespace), p.lease, identity, clock.RealClock{})
	}
	mgr, err := ctrl.NewManager(hostConfig, options)
	if err != nil {
		return nil, err
	}
	if err := p.register(metrics.Registry); err != nil {
		return nil, err
	}
	err = errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping), mgr.Add(manager.RunnableFunc(p.announcer.Run)))
	if p.registerHost != "" {
		p.registrar = p.newRegistrar()
		err = errors.Join(err, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			p.announcer.Say(contract.RegisterHostFunction, contract.FunctionStarting, "")
			p.registrar.Run(ctx)
			return nil
		})))
	}
	if p.clusterAPI.on {
		err = errors.Join(err, mgr.Add(manager.RunnableFunc(p.runClusterAPI)))
	}
	if p.exports.on() {
		err = errors.Join(err, mgr.Add(manager.RunnableFunc(p.runExports)))
	}
	if p.feed.on() {
		err = errors.Join(err, mgr.Add(everywhere(p.runFeed)))
	}
	if p.selections.on() {
		err = errors.Join(err, mgr.Add(manager.RunnableFunc(p.runSelections)))
	}
	if p.health {
		return mgr, errors.Join(err, mgr.Add(manager.RunnableFunc(p.runHealth)))
	}
	err = errors.Join(err, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		health.Retract(ctx, p.registry.ClusterregistryV1beta1().Clusters(), clock.RealClock{})
		return nil
	})))
	return mgr, err
}

// register registers the metrics of all functions, also of those that are off: these have
// no series.
func (p *program) register(registry prometheus.Registerer) error {
	var err, failed error
	p.metrics.health, err = health.NewMetrics(registry)
	failed = errors.Join(failed, err)
	p.metrics.api, err = clusterapi.NewMetrics(registry)
	failed = errors.Join(failed, err)
	p.metrics.exports, err = export.NewMetrics(registry)
	failed = errors.Join(failed, err)
	p.metrics.feed, err = feed.NewMetrics(registry)
	failed = errors.Join(failed, err)
	p.metrics.selections, err = selection.NewMetrics(registry)
	return errors.Join(failed, err)
}

func (p *program) newRegistrar() *hostentry.Registrar {
	return hostentry.New(hostentry.Config{
		Name: p.registerHost, URL: p.registerHostURL, CABundle: p.hostCA,
		Address: p.address, Host: p.host, Clusters: p.registry.ClusterregistryV1beta1().Clusters(),
		Period: p.registerHostPeriod, Clock: clock.RealClock{},
		Say: p.speaker(contract.RegisterHostFunction),
	})
}

// speaker returns how a function says how it is.
func (p *program) speaker(function string) func(contract.FunctionState, string) {
	return func(state contract.FunctionState, message string) { p.announcer.Say(function, state, message) }
}

// onceRead starts what [program.watch] returned, and runs a function once all clusters were read,
// until ctx ends.
func onceRead(ctx context.Context, factory informers.SharedInformerFactory, clusters clusterinformers.ClusterInformer, run func(context.Context)) {
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if cache.WaitForCacheSync(ctx.Done(), clusters.Informer().HasSynced) {
		run(ctx)
	}
}

// watch returns what reads the clusters of the registry for a function once the factory is
// started. It says what they are waited for until all of them were read.
func (p *program) watch(say func(contract.FunctionState, string)) (informers.SharedInformerFactory, clusterinformers.ClusterInformer, error) {
	factory := informers.NewSharedInformerFactory(p.registry, 0)
	clusters := factory.Clusterregistry().V1beta1().Clusters()
	err := clusters.Informer().SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if !clusters.Informer().HasSynced() {
			say(contract.FunctionStarting, fmt.Sprintf("Waiting for the clusters of the registry: %v", err))
		}
	})
	return factory, clusters, err
}

// hostClients configures the clients of a function that asks the host cluster of many objects:
// they are its own, so that it does not keep the Lease waiting.
func (p *program) hostClients() *rest.Config {
	config := rest.CopyConfig(p.hostConfig)
	config.QPS, config.Burst = 50, 100
	return config
}

// prober returns what connects to the endpoints of entries for a function, once it is known
// where no entry may lead. It is nil if ctx ends before.
func (p *program) prober(ctx context.Context, say func(contract.FunctionState, string)) *probe.Prober {
	p.known.Do(func() {
		var reader kubernetes.Interface
		if p.readHostCIDRs {
			reader = p.host
		}
		p.inside = ranges.New(reader, p.options.host, p.pod, clock.RealClock{})
	})
	err := p.inside.Await(ctx, func(err error) {
		say(contract.FunctionStarting, fmt.Sprintf("Waiting for the ranges of the host cluster's Services and pods: %v. Without the right to read them, set --host-cidrs and --read-host-cidrs=false.", err))
	})
	if err != nil {
		return nil // the error is that ctx has ended
	}
	p.following.Do(func() { go p.inside.Follow(ctx) })
	return &probe.Prober{Policy: address.Policy{HostCIDRs: p.inside.Prefixes, Allowed: p.allowed}, Proxies: p.allowedProxies}
}

// own returns what knows the endpoint of the host cluster that this program has registered;
// nil when it registers none.
func (p *program) own() func(cluster string, endpoint v1beta1.Endpoint) bool {
	if p.registrar == nil {
		return nil
	}
	return p.registrar.Own
}

// runHealth runs the health function while this replica leads.
func (p *program) runHealth(ctx context.Context) error {
	say := p.speaker(contract.HealthFunction)
	say(contract.FunctionStarting, "")
	prober := p.prober(ctx, say)
	if prober == nil {
		return nil
	}
	factory, clusters, err := p.watch(say)
	if err != nil {
		return err
	}
	config := health.Config{
		Clusters: p.registry.ClusterregistryV1beta1().Clusters(), Informer: clusters, Heartbeats: p.registry.ClusterregistryV1beta1().ClusterHeartbeats(),
		Probe: prober.Probe, Client: p.client, Trouble: p.trouble.Last, Unwatched: p.trouble.Lasting, Gap: p.inside.Gap, Say: say,
		Period: p.period, Concurrency: p.concurrency, Clock: clock.RealClock{}, Metrics: p.metrics.health,
		Own: p.own(),
	}
	controller, err := health.New(config)
	if err != nil {
		return err
	}
	onceRead(ctx, factory, clusters, func(ctx context.Context) {
		say(contract.FunctionRunning, "")
		controller.Run(ctx)
	})
	return nil
}
