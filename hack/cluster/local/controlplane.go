package local

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/hack/cluster/addons"
	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/machine"
	"github.com/clusterregistry/operator/hack/cluster/network"
)

// readyTimeout bounds each wait of an Up; on a loaded computer all is slow.
const readyTimeout = 5 * time.Minute

func (c *Cluster) server() string {
	return fmt.Sprintf("https://%s:6443", c.network().ControlPlane())
}

// kubeconfigFor returns the path of a component's kubeconfig.
func (c *Cluster) kubeconfigFor(name string) string {
	return filepath.Join(c.Dir, "pki", name+".kubeconfig")
}

// certificates makes the cluster's certificates and kubeconfigs, once.
func (c *Cluster) certificates() error {
	if _, err := os.Stat(c.Kubeconfig()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	store := c.pki()
	ca, err := store.Authority("ca")
	if err != nil {
		return err
	}
	frontProxy, err := store.Authority("front-proxy-ca")
	if err != nil {
		return err
	}
	if err := store.ServiceAccountKey("service-accounts"); err != nil {
		return err
	}
	masters := []string{"system:masters"}
	if err := errors.Join(
		frontProxy.Issue("front-proxy-client", pkix.Name{CommonName: "front-proxy-client"}),
		ca.Issue("kube-apiserver", pkix.Name{CommonName: "kube-apiserver"}, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "localhost", "127.0.0.1", network.KubernetesAddress, c.network().ControlPlane().String()),
		ca.Issue("kubelet-client", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: masters}),
	); err != nil {
		return err
	}
	clients := map[string]pkix.Name{
		"kube-controller-manager": {CommonName: "system:kube-controller-manager"},
		"kube-scheduler":          {CommonName: "system:kube-scheduler"},
		"kube-proxy":              {CommonName: "system:kube-proxy"},
	}
	hosts := map[string][]string{}
	for i := range c.state.Nodes {
		name := nodeName(i + 1)
		clients[name] = pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
		hosts[name] = []string{name, c.network().Node(i + 1).String()}
	}
	for name, subject := range clients {
		if err := ca.Issue(name, subject, hosts[name]...); err != nil {
			return err
		}
		if err := store.Kubeconfig(c.kubeconfigFor(name), c.Name, c.server(), "ca", name); err != nil {
			return err
		}
	}
	if err := ca.Issue("admin", pkix.Name{CommonName: "admin", Organization: masters}); err != nil {
		return err
	}
	// Last: its presence says that all the others are there.
	return store.Kubeconfig(c.Kubeconfig(), c.Name, c.server(), "ca", "admin")
}

// startControlPlane starts the machine of the control plane and waits until
// its API is ready.
func (c *Cluster) startControlPlane(ctx context.Context, bins binaries) error {
	if err := c.certificates(); err != nil {
		return err
	}
	if err := c.network().Up(ctx, controlPlane); err != nil {
		return err
	}
	m := c.controlPlaneMachine(bins)
	config, err := c.restConfig()
	if err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := addons.Wait(ctx, "kube-apiserver to answer /readyz", func(ctx context.Context) error {
		if err := ensureRunning(ctx, m); err != nil {
			return err
		}
		if err := c.network().Reachable(ctx); err != nil {
			return err
		}
		return readyz(ctx, httpClient, c.server())
	}); err != nil {
		return fmt.Errorf("%w\nthe end of %s:\n%s", err, m.LogFile("kube-apiserver"), tailFile(m.LogFile("kube-apiserver")))
	}
	return nil
}

// ensureRunning starts the machine unless it runs. A machine that was killed
// counts as running until the kernel is done with it, so whoever waits for
// what runs on it asks again.
func ensureRunning(ctx context.Context, m machine.Machine) error {
	running, err := m.Running(ctx)
	if err != nil || running {
		return err
	}
	return m.Start(ctx)
}

func readyz(ctx context.Context, httpClient *http.Client, server string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

func (c *Cluster) controlPlaneMachine(bins binaries) machine.Machine {
	m := c.machine(controlPlane)
	store := c.pki()
	m.Services = []machine.Service{
		{Name: "etcd", Args: []string{filepath.Join(bins["etcd"], "etcd"),
			"--data-dir=/var/lib/etcd", "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380", "--log-level=warn",
			// The cluster's state is not worth a disk flush for every write.
			"--unsafe-no-fsync"}},
		{Name: "kube-apiserver", Args: []string{bins.kubernetes("kube-apiserver"),
			"--etcd-servers=http://127.0.0.1:2379", "--advertise-address=" + c.network().ControlPlane().String(), "--secure-port=6443",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--client-ca-file=" + store.Cert("ca"),
			"--tls-cert-file=" + store.Cert("kube-apiserver"), "--tls-private-key-file=" + store.Key("kube-apiserver"),
			"--kubelet-certificate-authority=" + store.Cert("ca"), "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate=" + store.Cert("kubelet-client"), "--kubelet-client-key=" + store.Key("kubelet-client"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + store.PublicKey("service-accounts"), "--service-account-signing-key-file=" + store.Key("service-accounts"),
			"--service-cluster-ip-range=" + network.ServicesCIDR,
			// The aggregator, as kubeadm sets it up.
			"--requestheader-client-ca-file=" + store.Cert("front-proxy-ca"), "--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + store.Cert("front-proxy-client"), "--proxy-client-key-file=" + store.Key("front-proxy-client"),
			// No kube-proxy runs here: Services are reached by their endpoints.
			"--enable-aggregator-routing=true"}},
		{Name: "kube-controller-manager", Args: []string{bins.kubernetes("kube-controller-manager"),
			"--kubeconfig=" + c.kubeconfigFor("kube-controller-manager"), "--use-service-account-credentials",
			"--service-account-private-key-file=" + store.Key("service-accounts"), "--root-ca-file=" + store.Cert("ca"),
			"--cluster-signing-cert-file=" + store.Cert("ca"), "--cluster-signing-key-file=" + store.Key("ca"),
			"--allocate-node-cidrs=false", "--leader-elect=false"}},
	}
	if c.state.Nodes == 0 {
		return m // there is nothing to schedule to
	}
	m.Services = append(m.Services,
		machine.Service{Name: "kube-scheduler", Args: []string{bins.kubernetes("kube-scheduler"),
			"--kubeconfig=" + c.kubeconfigFor("kube-scheduler"), "--leader-elect=false"}})
	return m
}

func (c *Cluster) restConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// client returns a client of the cluster's API, which must be reachable.
func (c *Cluster) client(ctx context.Context) (client.Client, error) {
	if err := c.network().Reachable(ctx); err != nil {
		return nil, fmt.Errorf("%w; the cluster is not up, perhaps since a reboot: \"make cluster\" brings it back", err)
	}
	config, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{})
}

// tailFile returns the last lines of a log for an error message.
func tailFile(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return components.Tail(string(content), 15)
}
