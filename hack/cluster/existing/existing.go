// Package existing uses the cluster of $KUBECONFIG as it is: nothing is
// installed in it, and nothing removed from it. Images are pushed to a registry
// that its nodes pull from.
package existing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster is somebody else's cluster.
type Cluster struct {
	// Dir receives a copy of the kubeconfig.
	Dir string
	// Out receives progress.
	Out io.Writer
}

// Kubeconfig returns the path of the copy.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Up checks that the cluster answers and copies the current context of its kubeconfig.
func (c *Cluster) Up(context.Context) error {
	if os.Getenv("KUBECONFIG") == "" {
		return errors.New("provider existing uses the cluster of $KUBECONFIG, which is not set; point it at the cluster's kubeconfig")
	}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return fmt.Errorf("$KUBECONFIG: %w", err)
	}
	if err := errors.Join(clientcmdapi.MinifyConfig(config), clientcmdapi.FlattenConfig(config)); err != nil {
		return fmt.Errorf("$KUBECONFIG: %w", err)
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("$KUBECONFIG: %w", err)
	}
	version, err := serverVersion(restConfig)
	if err != nil {
		return fmt.Errorf("the cluster of $KUBECONFIG at %s does not answer: %w", restConfig.Host, err)
	}
	fmt.Fprintf(c.Out, "using the cluster at %s, Kubernetes %s\n", restConfig.Host, version)
	return clientcmd.WriteToFile(*config, c.Kubeconfig())
}

// Down forgets the copy of the kubeconfig; the cluster stays.
func (c *Cluster) Down(context.Context) error { return os.RemoveAll(c.Dir) }

// Status prints whether the cluster answers.
func (c *Cluster) Status(context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return err
	}
	version, err := serverVersion(config)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s answers, Kubernetes %s\n", config.Host, version)
	return nil
}

// Logs is refused: the cluster's logs are its owner's.
func (c *Cluster) Logs(context.Context, string) error {
	return errors.New("an existing cluster's logs are not gathered; use kubectl cluster-info dump")
}

func serverVersion(config *rest.Config) (string, error) {
	config.Timeout = 20 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}
