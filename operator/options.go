package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/clusterregistry/operator/operator/render"
)

// options are what the command line and the environment say.
type options struct {
	metricsAddress, probeAddress string
	leaderElect                  bool
	namespaces                   []string
	environment                  render.Environment
}

func newOptions() *options {
	o := &options{environment: render.Environment{
		ImageRepository: os.Getenv("IMAGE_REPOSITORY"),
		Namespace:       os.Getenv("POD_NAMESPACE"),
		ClusterDomain:   clusterDomain("/etc/resolv.conf"),
	}}
	if o.environment.ImageRepository == "" {
		o.environment.ImageRepository = "ghcr.io/clusterregistry"
	}
	return o
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, by HTTPS to those whom the cluster permits to get /metrics. \"0\" turns them off.")
	fs.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served.")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Let one of several replicas work, and another one take over when it is gone.")
	fs.StringSliceVar(&o.namespaces, "watch-namespaces", nil, "Namespaces whose ClusterRegistries are looked after, separated by commas. Default: all.")
	fs.StringVar(&o.environment.ImageRepository, "image-repository", o.environment.ImageRepository, "Where the images of registries come from that name no repository of their own. Default: $IMAGE_REPOSITORY.")
	fs.StringVar(&o.environment.ClusterDomain, "cluster-domain", o.environment.ClusterDomain, "The cluster's domain in DNS. Default: what /etc/resolv.conf says.")
}

func (o *options) validate() error {
	if o.environment.Namespace == "" {
		return fmt.Errorf("POD_NAMESPACE is not set: the operator must know its own namespace; its Deployment takes it from metadata.namespace")
	}
	return nil
}

// clusterDomain returns the domain of the cluster that a pod's resolv.conf
// searches services in.
func clusterDomain(path string) string {
	const usual = "cluster.local"
	content, err := os.ReadFile(path)
	if err != nil {
		return usual
	}
	for _, line := range strings.Split(string(content), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" {
			continue
		}
		for _, domain := range fields[1:] {
			if domain, is := strings.CutPrefix(domain, "svc."); is {
				return strings.TrimSuffix(domain, ".")
			}
		}
	}
	return usual
}
