package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// options are what the command line and the environment say.
type options struct {
	metricsAddress, probeAddress string
	leaderElect                  bool
	namespaces                   []string
	aggregated                   []string
	resyncPeriod                 time.Duration
	environment                  render.Environment
}

func newOptions() *options {
	o := &options{environment: render.Environment{
		ImageRepository: cmp.Or(os.Getenv("IMAGE_REPOSITORY"), render.PublishedRepository),
		ImageDigests:    render.ImageDigests(cmp.Or(os.Getenv("IMAGE_DIGESTS"), string(render.ImageDigestsPublished))),
		Namespace:       os.Getenv("POD_NAMESPACE"),
		ClusterDomain:   clusterDomain("/etc/resolv.conf"),
		Proxy:           render.ProxyFrom(os.Getenv),
	}}
	for _, namespace := range strings.Split(os.Getenv("AGGREGATED_NAMESPACES"), ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			o.aggregated = append(o.aggregated, namespace)
		}
	}
	return o
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, by HTTPS, for callers that the cluster permits to get /metrics. \"0\" turns them off.")
	fs.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served.")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Use leader election: one of several replicas works, and another one takes over when it fails.")
	fs.StringSliceVar(&o.namespaces, "watch-namespaces", nil, "Namespaces whose ClusterRegistries are managed, separated by commas. Default: all.")
	fs.StringSliceVar(&o.aggregated, "aggregated-namespaces", o.aggregated, "Namespaces whose ClusterRegistries may have mode Aggregated, which gives them an API group of the whole cluster, separated by commas; \"*\" means all. Default: $AGGREGATED_NAMESPACES, or none.")
	fs.DurationVar(&o.resyncPeriod, "resync-period", verdict.Vigil, "How often a ClusterRegistry is reconciled at least, since Secrets are not watched and etcd does not announce its alarms. From 1s to 2m.")
	fs.StringVar(&o.environment.ImageRepository, "image-repository", o.environment.ImageRepository, "Image repository of registries without one of their own. Default: $IMAGE_REPOSITORY.")
	fs.StringVar((*string)(&o.environment.ImageDigests), "image-digests", string(o.environment.ImageDigests), "Where pods of registries refer to images by their published digests: Published means in the repository "+render.PublishedRepository+", Always in every repository, because mirrors keep digests, and Never in none, such as where images were rebuilt. Default: $IMAGE_DIGESTS, or Published.")
	fs.StringVar(&o.environment.ClusterDomain, "cluster-domain", o.environment.ClusterDomain, "The cluster's domain in DNS. Default: what /etc/resolv.conf says.")
}

func (o *options) validate() error {
	if o.environment.Namespace == "" {
		return fmt.Errorf("POD_NAMESPACE is not set: the operator must know its own namespace; its Deployment takes it from metadata.namespace")
	}
	for _, namespace := range o.aggregated {
		if problems := validation.IsDNS1123Label(namespace); namespace != permission.AllNamespaces && len(problems) > 0 {
			return fmt.Errorf("--aggregated-namespaces (or AGGREGATED_NAMESPACES) has %q, which is not the name of a namespace, nor \"*\": %s", namespace, strings.Join(problems, "; "))
		}
	}
	if o.resyncPeriod < time.Second || o.resyncPeriod > verdict.Vigil {
		return fmt.Errorf("--resync-period is %s; it must be from %s to %s", o.resyncPeriod, time.Second, verdict.Vigil)
	}
	known := []render.ImageDigests{render.ImageDigestsPublished, render.ImageDigestsAlways, render.ImageDigestsNever}
	if !slices.Contains(known, o.environment.ImageDigests) {
		return fmt.Errorf("--image-digests (or IMAGE_DIGESTS) is %q; it must be one of %v", o.environment.ImageDigests, known)
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
