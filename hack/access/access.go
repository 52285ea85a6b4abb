// Package access opens the cluster of $KUBECONFIG.
package access

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// NewScheme returns the types of Kubernetes and of the operator.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme))
}

// New returns a client of the cluster of $KUBECONFIG, and how it was reached.
// Nothing is asked of the cluster yet. $KUBECONFIG must be set: what changes a
// cluster does not take whichever happens to be the default.
func New() (client.Client, *rest.Config, error) {
	if os.Getenv("KUBECONFIG") == "" {
		return nil, nil, errors.New("KUBECONFIG is not set; export KUBECONFIG=$PWD/.cluster/kubeconfig for the local cluster, or the path of another cluster's kubeconfig")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("$KUBECONFIG (%s): %w", os.Getenv("KUBECONFIG"), err)
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("the cluster of $KUBECONFIG at %s: %w", config.Host, err)
	}
	return c, config, nil
}
