package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// healthPeriod is the time between two probes of a cluster, and probeTimeout how long
	// one may take.
	healthPeriod = time.Second
	probeTimeout = 10 * time.Second
)

// watched is a registry whose clusters the controller probes, from another place of the
// network that the members are on.
type watched struct {
	t        *testing.T
	began    time.Time
	network  *framework.Network
	members  map[string]*fleetMember
	plugin   plugin
	clusters typed.ClusterInterface
	timeline *timeline
	// start starts a controller.
	start      func() *framework.Controller
	controller *framework.Controller
}

// fleetNames are the clusters of the registry: lost and spare are further addresses of
// the north.
var fleetNames = []string{"north", "south", "east", "west", "lost", "spare", "extra"}

// testHealth has one accident after the other happen to the members, or several at once,
// and reads what the controller reports of it. One that takes as long as probes do that
// are not answered happens while others do.
func testHealth(t *testing.T, network *framework.Network, members map[string]*fleetMember) {
	w := startWatched(t, network, members)
	t.Cleanup(func() {
		for _, name := range fleetNames {
			if w.timeline.check(t, name); t.Failed() {
				t.Log(w.timeline.story(t, name))
			}
		}
	})
	t.Run("healthy", w.testHealthy)
	silent := w.beginSilence()
	t.Run("certificates", w.testCertificates)
	t.Run("not ready", w.testNotReady)
	t.Run("another address", w.testAnotherAddress)
	t.Run("silent", func(t *testing.T) { w.testSilence(t, silent) })
	t.Run("the controller is killed while a member is stopped", w.testKilled)
	t.Run("most are cut off", w.testIsolated)
}

// startWatched makes the registry, enters the members, and starts the controller.
func startWatched(t *testing.T, network *framework.Network, members map[string]*fleetMember) *watched {
	t.Helper()
	registry, authority, config := independent(t, "--bind-address=0.0.0.0")
	w := &watched{t: t, began: time.Now().Truncate(time.Second), network: network, members: members, clusters: betaOf(t, config), plugin: plugin{t, registry.Kubeconfig(t, authority.Issue("root", admins))}}
	for _, name := range []string{"north", "south", "east", "west"} {
		w.join(t, members[name], 0)
	}
	// Names for the north at addresses to which something happens, entered by hand: join
	// would say that they are one cluster.
	for i, name := range []string{"lost", "spare", "extra"} {
		twin := *members["north"]
		twin.address = network.Address(byte(31 + i))
		endpoint := v1beta1.Endpoint{Name: "main", URL: twin.url(t), CABundle: twin.ca.PEM, TLSServerName: serverName}
		if _, err := w.clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{endpoint}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.timeline = watchClusters(t, w.clusters)
	here := network.Address(1)
	registryConfig := moved(t, registry.Kubeconfig(t, authority.Issue("controller", admins)), here)
	hostConfig := moved(t, members["north"].Kubeconfig("controller", "system:masters"), here)
	w.start = func() *framework.Controller {
		return framework.StartControllerIn(t, network, "--kubeconfig="+registryConfig, "--host-kubeconfig="+hostConfig, "--namespace=default", "--health", "--health-period="+healthPeriod.String())
	}
	w.controller = w.start()
	return w
}

// moved returns a copy of a kubeconfig that leads to another address of the server.
func moved(t *testing.T, kubeconfig, address string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(cluster.Server, "https://"), "/"))
		if err != nil {
			t.Fatal(err)
		}
		cluster.Server, cluster.TLSServerName = "https://"+net.JoinHostPort(address, port), "localhost"
	}
	return saved(t, config)
}

// join enters a member, as a person does, and returns what is printed.
func (w *watched) join(t *testing.T, m *fleetMember, code int) (stdout, stderr string) {
	t.Helper()
	p := w.plugin
	p.t = t
	return p.run(code, "", "join", m.name, "--cluster-kubeconfig", kubeconfig(t, m), "--cluster-context", m.name)
}

// await waits until the conditions Reachable, ControlPlaneHealthy and Available of a
// cluster are so, each a status and a reason, and returns the cluster.
func (w *watched) await(t *testing.T, name, reachable, healthy, available string) *v1beta1.Cluster {
	t.Helper()
	var found *v1beta1.Cluster
	want := strings.Join([]string{reachable, healthy, available}, ", ") + ", "
	framework.Eventually(t, name+" to be "+want, func(ctx context.Context) (err error) {
		if found, err = w.clusters.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if got := summary(found); !strings.HasPrefix(got, want) {
			return fmt.Errorf("it is %s: %s", got, conditionOf(found, "Available").Message)
		}
		return nil
	})
	if status := found.Status; status.ObservedGeneration != found.Generation {
		t.Errorf("%s: observed of generation %d, and it has %d", name, status.ObservedGeneration, found.Generation)
	}
	return found
}

// awaitWell waits until a cluster is as healthy as it can be.
func (w *watched) awaitWell(t *testing.T, name string) *v1beta1.Cluster {
	t.Helper()
	if name == "west" {
		return w.await(t, name, "True Reached", "Unknown AnonymousRefused", "True AnonymousRefused")
	}
	return w.await(t, name, "True Reached", "True Ready", "True Available")
}

// awaitDown waits until a cluster is not available for a reason, and expects that the
// messages contain the texts, and that it turned after three failures and not before.
func (w *watched) awaitDown(t *testing.T, name, reason string, since time.Time, probe time.Duration, texts ...string) {
	t.Helper()
	c := w.await(t, name, "False "+reason, "Unknown Unreachable", "False "+reason)
	for _, kind := range []string{"Reachable", "Available"} {
		for _, text := range texts {
			if message := conditionOf(c, kind).Message; !strings.Contains(message, text) {
				t.Errorf("%s of %s: %q is missing in %q", kind, name, text, message)
			}
		}
		// The first of three probes may begin at once, and the others a period later, or when
		// the one before has ended. The first may be late on a busy machine.
		if least, after := 2*max(healthPeriod, probe)+probe-healthPeriod, w.timeline.changed(t, name, kind, metav1.ConditionFalse, since).Sub(since); after < least {
			t.Errorf("%s of %s turned False after %s: three probes take at least %s", kind, name, after, least)
		}
	}
}

// awaitFunction waits until the controller says at its Lease how the function is.
func (w *watched) awaitFunction(t *testing.T, state contract.FunctionState, message string) {
	t.Helper()
	leases := clientset(t, w.members["north"].Config).CoordinationV1().Leases("default")
	framework.Eventually(t, "the controller to say that it is "+string(state), func(ctx context.Context) error {
		lease, err := leases.Get(ctx, "clusterregistry-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status contract.ControllerStatus
		if err := json.Unmarshal([]byte(lease.Annotations[contract.ControllerStatusAnnotation]), &status); err != nil {
			return err
		}
		if is := status.Functions[contract.HealthFunction]; lease.Spec.HolderIdentity == nil || status.Holder != *lease.Spec.HolderIdentity || is.State != state || !strings.Contains(is.Message, message) {
			return fmt.Errorf("it says %+v", status)
		}
		return nil
	})
}
