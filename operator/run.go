package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/direct"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/clusterregistry"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/registryclient"
	"github.com/clusterregistry/operator/operator/version"
)

// leaseName is the name of the Lease that the leader holds.
const leaseName = "clusterregistry-operator"

// run runs the operator until ctx ends.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	config, err := connection()
	if err != nil {
		return err
	}
	mgr, err := o.manager(config)
	if err != nil {
		return err
	}
	reconciler, err := o.reconciler(mgr)
	if err != nil {
		return err
	}
	if err := reconciler.Setup(mgr); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// connection is the pod's own, or the one that $KUBECONFIG names.
func connection() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w; outside of a pod, set KUBECONFIG", err)
	}
	return connect(config, os.Getenv("KUBECONFIG") == ""), nil
}

// connect makes a configuration that of the operator. In a pod, no proxy leads to the host cluster.
func connect(config *rest.Config, inPod bool) *rest.Config {
	if config.Proxy == nil && inPod {
		config.Proxy = direct.Proxy
	}
	// The host limits its clients itself (API priority and fairness); this bounds
	// what one installation of many registries asks at once.
	config.QPS, config.Burst = 50, 100
	// What the servers of an aggregated registry answer comes through the host.
	config.Wrap(registryclient.Bound)
	config.Wrap(apply.AskOnce)
	return config
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme), certmanagerv1.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme))
}

func (o *options) manager(config *rest.Config) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  informers.Options(o.namespaces),
		NewCache: func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			options.Mapper = informers.Mapper(options.Mapper)
			held, err := cache.New(config, options)
			return informers.Tolerant(held), err
		},
		// Secrets are read one by one: the operator may not list them.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.environment.Namespace,
		LeaderElectionReleaseOnCancel: true,
	})
}

func (o *options) reconciler(mgr manager.Manager) (*clusterregistry.Reconciler, error) {
	releases, err := version.Releases()
	if err != nil {
		return nil, err
	}
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	ca := mgr.GetConfig().CAData
	if file := mgr.GetConfig().CAFile; file != "" {
		if ca, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the CA of the host cluster: %w", err)
		}
	}
	environment := o.environment
	environment.Namespaced = len(o.namespaces) > 0
	return &clusterregistry.Reconciler{
		HostCluster: operand.HostCluster{
			Client:  mgr.GetClient(),
			Live:    mgr.GetAPIReader(),
			Applier: apply.New(mgr.GetClient(), mgr.GetAPIReader(), informers.MetadataOnly()...),
			Events:  mgr.GetEventRecorder("clusterregistry-operator"),
		},
		Discovery:    asks,
		Releases:     releases,
		Environment:  environment,
		Host:         mgr.GetConfig(),
		HostCA:       ca,
		Namespaces:   permission.Namespaces{Managed: o.namespaces, Aggregated: o.aggregated},
		ResyncPeriod: o.resyncPeriod,
		AskEtcd:      func(ctx context.Context, access etcd.Access) etcd.State { return access.Observe(ctx) },
		AskServer:    func(ctx context.Context, server health.Server) (string, error) { return server.Ask(ctx) },
		Handshake:    handshake.Ask,
	}, nil
}
