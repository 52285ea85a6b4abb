// Command fleet-controller labels the namespace default of every available cluster of a
// registry with the cluster's name in the registry, and keeps it so.
package main

import (
	"context"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/provider"
)

const label = "fleet.example.com/cluster"

func main() {
	access := flag.String("access", "fleet", "the name of the entries of access that the plugin is for")
	command := flag.String("command", "", "the exec plugin that prints credentials for a cluster")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *access, *command); err != nil {
		ctrl.Log.Error(err, "the controller ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, access, command string) error {
	config, err := ctrl.GetConfig() // of the registry: --kubeconfig or $KUBECONFIG
	if err != nil {
		return err
	}
	fleet, err := provider.New(provider.Options{
		Registry: versioned.NewForConfigOrDie(config),
		Plugins:  []provider.Plugin{{Name: access, Exec: &clientcmdapi.ExecConfig{Command: command, ProvideClusterInfo: true}}},
	})
	if err != nil {
		return err
	}
	manager, err := mcmanager.New(config, fleet, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	reconciler := mcreconcile.Func(func(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
		cluster, err := manager.GetCluster(ctx, request.ClusterName)
		if err != nil {
			return ctrl.Result{}, err // of a cluster that is no longer engaged: ignored
		}
		var namespace corev1.Namespace
		if err := cluster.GetClient().Get(ctx, request.NamespacedName, &namespace); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if namespace.Name != corev1.NamespaceDefault || namespace.Labels[label] == request.ClusterName.String() {
			return ctrl.Result{}, nil
		}
		before := namespace.DeepCopy()
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		namespace.Labels[label] = request.ClusterName.String()
		return ctrl.Result{}, cluster.GetClient().Patch(ctx, &namespace, client.MergeFrom(before))
	})
	if err := mcbuilder.ControllerManagedBy(manager).Named("fleet").For(&corev1.Namespace{}).Complete(reconciler); err != nil {
		return err
	}
	return manager.Start(ctx)
}
