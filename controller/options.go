package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/controller/probe"
)

// options are what the command line and the environment say.
type options struct {
	kubeconfig, hostKubeconfig string

	namespace, lease, registryName string
	leaderElect                    bool
	metricsAddress, probeAddress   string

	health        bool
	period        time.Duration
	concurrency   int
	clientAddress string
	allowedCIDRs  []string
	proxies       []string
	hostCIDRs     []string
	readHostCIDRs bool

	registerHost       string
	registerHostURL    string
	registerHostCAFile string
	registerHostPeriod time.Duration

	clusterAPI clusterAPIOptions
	exports    exportOptions
	feed       feedOptions
	selections selectionOptions

	// podAddress is that of this pod, if it is one: no entry may lead there.
	podAddress string

	// What the texts above say, once they are validated.
	client, pod    netip.Addr
	allowed, host  []netip.Prefix
	allowedProxies []probe.Proxy
	hostCA         []byte
}

func newOptions() *options {
	return &options{namespace: os.Getenv("POD_NAMESPACE"), clientAddress: os.Getenv("POD_IP"), podAddress: os.Getenv("POD_IP")}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig of the registry: that of a client certificate for an independent one. Default: the host cluster, which serves an aggregated one.")
	fs.StringVar(&o.hostKubeconfig, "host-kubeconfig", "", "Kubeconfig of the host cluster, for the Lease. Default: the ServiceAccount of the pod.")

	fs.StringVar(&o.namespace, "namespace", o.namespace, "Namespace of the Lease in the host cluster. Default: $POD_NAMESPACE.")
	fs.StringVar(&o.registryName, "registry-name", "", "Name of the ClusterRegistry that this controller belongs to, in --namespace: the label registry.clusterregistry.io/NAME opens namespaces to it, and events are about it.")
	fs.StringVar(&o.lease, "lease-name", "clusterregistry-controller", "Name of the Lease that the leader holds. Its annotation clusterregistry.k8s.io/controller-status has the state of each function.")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Use leader election: one of several replicas works, and another one takes over when it fails.")
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Where metrics are served, by HTTPS, for callers that the host cluster permits to get /metrics. \"0\" turns them off.")
	fs.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served. \"0\" turns them off.")

	fs.BoolVar(&o.health, "health", false, "Report for every cluster whether it is reachable and available.")
	fs.DurationVar(&o.period, "health-period", time.Minute, "Time between two probes of a cluster, at least 1s.")
	fs.IntVar(&o.concurrency, "health-concurrency", 64, "How many clusters are probed at once, among those that answered the last probe within a second, and the same number again among the others, and among new ones.")
	fs.StringVar(&o.clientAddress, "health-client-address", o.clientAddress, "IP address by which the endpoint of a cluster is chosen. Default: $POD_IP; without it, endpoints for any client.")
	fs.StringSliceVar(&o.allowedCIDRs, "health-allowed-cidrs", nil, "Ranges of the host cluster's Services and pods that clusters may have their endpoints in, separated by commas. Loopback, link-local, multicast and metadata addresses are always refused.")
	fs.StringSliceVar(&o.proxies, "health-allowed-proxies", nil, "URLs of HTTP proxies, such as http://proxy.example.com:3128, that clusters may be probed through if their endpoint names one in proxyURL, separated by commas. A proxy connects wherever it is allowed to itself. Default: none.")
	fs.StringSliceVar(&o.hostCIDRs, "host-cidrs", nil, "More ranges of the host cluster's Services and pods, separated by commas.")
	fs.BoolVar(&o.readHostCIDRs, "read-host-cidrs", true, "Read the ranges of the host cluster's Services and pods from its ServiceCIDRs and nodes. Without, --host-cidrs must have them.")

	fs.StringVar(&o.registerHost, "register-host", "", "Name under which the host cluster is registered. Default: it is not registered.")
	fs.StringVar(&o.registerHostURL, "register-host-url", "", "Address of the host cluster for its clients. Default: that in kube-public/cluster-info, with its CA; else none.")
	fs.StringVar(&o.registerHostCAFile, "register-host-ca-file", "", "File with the CA certificates of --register-host-url, in PEM. Default: the clients' own CAs.")
	fs.DurationVar(&o.registerHostPeriod, "register-host-period", 5*time.Minute, "Time between two reads of the host cluster's version and nodes, at least 1s.")

	o.clusterAPI.addFlags(fs)
	o.exports.addFlags(fs)
	o.feed.addFlags(fs)
	o.selections.addFlags(fs)
}

// validate completes the options, or says what is wrong with them.
func (o *options) validate() error {
	switch {
	case !o.health && o.registerHost == "" && !o.clusterAPI.on && !o.exports.on() && !o.feed.on() && !o.selections.on():
		return fmt.Errorf("no function is on: set --health, --register-host, --cluster-api, --exports-file, --feed-file, --cluster-selections or several of them")
	case o.leaderElect && o.namespace == "":
		return fmt.Errorf("--namespace (or POD_NAMESPACE) is not set: it is where the Lease is; without one, set --leader-elect=false")
	case o.period < time.Second || o.registerHostPeriod < time.Second:
		return fmt.Errorf("--health-period and --register-host-period must be at least 1s")
	case o.concurrency < 1:
		return fmt.Errorf("--health-concurrency must be at least 1")
	case !o.readHostCIDRs && len(o.hostCIDRs) == 0 && (o.health || o.exports.on() || o.feed.on()):
		return fmt.Errorf("--host-cidrs must have the ranges of the host cluster's Services and pods when --read-host-cidrs=false: clusters could have their endpoints there otherwise")
	case o.registerHost == "" && (o.registerHostURL != "" || o.registerHostCAFile != ""):
		return fmt.Errorf("--register-host-url and --register-host-ca-file mean nothing without --register-host")
	case o.registerHostURL == "" && o.registerHostCAFile != "":
		return fmt.Errorf("--register-host-ca-file means nothing without --register-host-url")
	}
	if faults := validation.IsDNS1123Label(o.registerHost); o.registerHost != "" && len(faults) > 0 {
		return fmt.Errorf("--register-host %q is not the name of a cluster: %s", o.registerHost, faults[0])
	}
	err := errors.Join(o.clusterAPI.validate(o), o.selections.validate(o), o.exports.validate(o), o.feed.validate(o)) // what an export may choose is for selections to say
	if err != nil {
		return err
	}
	if o.clientAddress != "" {
		if o.client, err = netip.ParseAddr(o.clientAddress); err != nil {
			return fmt.Errorf("--health-client-address (or POD_IP): %w", err)
		}
	}
	if o.allowed, err = prefixes("--health-allowed-cidrs", o.allowedCIDRs); err != nil {
		return err
	}
	for _, text := range o.proxies {
		proxy, err := probe.ParseProxy(text)
		if err != nil {
			return fmt.Errorf("--health-allowed-proxies: %w", err)
		}
		o.allowedProxies = append(o.allowedProxies, proxy)
	}
	if o.host, err = prefixes("--host-cidrs", o.hostCIDRs); err != nil {
		return err
	}
	if o.podAddress != "" {
		address, err := netip.ParseAddr(o.podAddress)
		if err != nil {
			return fmt.Errorf("POD_IP: %w", err)
		}
		o.pod = address.Unmap().WithZone("")
	}
	if o.registerHostCAFile != "" {
		if o.hostCA, err = os.ReadFile(o.registerHostCAFile); err != nil {
			return fmt.Errorf("--register-host-ca-file: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(o.hostCA) {
			return fmt.Errorf("--register-host-ca-file: %s has no certificate that can be read: set a file with certificates in PEM, or none", o.registerHostCAFile)
		}
	}
	return nil
}

func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%s has %q, which is not a range such as 10.0.0.0/8 or fd00::/8", flag, text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}
