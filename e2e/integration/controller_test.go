package integration

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestController runs the controller with a real registry and a real kube-apiserver as
// its member, which is the host of its Lease as well. TestMembers has what happens to
// members.
func TestController(t *testing.T) {
	t.Parallel()
	const name = "member.example.com"
	ca := framework.NewAuthority(t, "member-ca")
	serving := ca.Issue("member", nil, name)
	host := framework.StartHostWith(t, newest, map[string]string{"tls-sni-cert-key": serving.Cert + "," + serving.Key})
	registry, clients, config := independent(t, "--guarded-fields=Enforce")
	clusters := versioned.NewForConfigOrDie(config).ClusterregistryV1beta1().Clusters()
	relay := framework.StartRelay(t, strings.Trim(strings.TrimPrefix(host.Config.Host, "https:"), "/"))
	for cluster, url := range map[string]string{"east": "https://" + relay.Address, "loopback": host.Config.Host} {
		endpoint := v1beta1.Endpoint{Name: "e", URL: url, CABundle: ca.PEM, TLSServerName: name}
		if _, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{endpoint}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	start := func(groups []string, flags ...string) *framework.Controller {
		return framework.StartController(t, append(flags, "--kubeconfig="+registry.Kubeconfig(t, clients.Issue("controller", groups)), "--host-kubeconfig="+host.Kubeconfig("root", "system:masters"),
			"--namespace=default", "--register-host=home", "--register-host-period=1s")...)
	}
	controller := start([]string{contract.HealthGroup, contract.RegisterHostGroup}, "--health", "--health-period=1s", "--health-allowed-cidrs=127.0.0.0/8")

	east := awaitCondition(t, clusters, "east", "Available", metav1.ConditionTrue, "Available")
	if east.Status.Version.Kubernetes != newest {
		t.Errorf("version %q", east.Status.Version.Kubernetes)
	}
	awaitCondition(t, clusters, "loopback", "Reachable", metav1.ConditionUnknown, "AddressRefused")
	home := awaitCondition(t, clusters, "home", "IdentityVerified", metav1.ConditionTrue, "HostCluster")
	awaitCondition(t, clusters, "home", "Reachable", metav1.ConditionUnknown, "NoEndpoint")
	if system, err := clientset(t, host.Config).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}); err != nil || home.Spec.ID != string(system.UID) {
		t.Errorf("the host is registered with the id %q, %v", home.Spec.ID, err)
	}
	awaitRunning(t, host)

	testSteadyFleet(t, clusters)

	reportAs(t, clusters, "agent", "east")
	controller.Stop()
	start([]string{contract.RegisterHostGroup})
	testTakenBack(t, clusters)
}

// reportAs reports a condition of a cluster as another reporter does.
func reportAs(t *testing.T, clusters typed.ClusterInterface, reporter, cluster string) {
	t.Helper()
	now := metav1.Now()
	joined := metav1ac.Condition().WithType("Joined").WithStatus(metav1.ConditionTrue).WithReason("Joined").WithMessage("").WithLastTransitionTime(now)
	status := apply.ClusterStatus().WithConditions(joined).WithReporters(apply.Reporter().WithName(reporter).WithLastSeen(now).WithConditions(joined))
	if _, err := clusters.ApplyStatus(t.Context(), apply.Cluster(cluster).WithStatus(status), metav1.ApplyOptions{FieldManager: reporter}); err != nil {
		t.Fatal(err)
	}
}

// clusterStatus is the status of a cluster, an empty one where it has none.
func clusterStatus(cluster *v1beta1.Cluster) v1beta1.ClusterStatus {
	if cluster.Status == nil {
		return v1beta1.ClusterStatus{}
	}
	return *cluster.Status
}

// testTakenBack waits until the controller, whose function health is off now and whose
// user has the rights of registerHost alone, has taken its reports back, and expects that
// what others have reported stays.
func testTakenBack(t *testing.T, clusters typed.ClusterInterface) {
	t.Helper()
	framework.Eventually(t, "the reports of health to be taken back", func(ctx context.Context) error {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, cluster := range list.Items {
			for _, is := range clusterStatus(&cluster).Reporters {
				if is.Name == "clusterregistry-controller-health" {
					return fmt.Errorf("%s has its entry", cluster.Name)
				}
			}
		}
		return nil
	})
	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type rest struct {
		conditions, reporters []string
		version               string
	}
	want := map[string]rest{
		"east": {conditions: []string{"Joined"}, reporters: []string{"agent"}},
		"home": {conditions: []string{"IdentityVerified"}, reporters: []string{"clusterregistry-controller-host"}, version: newest},
	}
	for _, cluster := range list.Items {
		status := clusterStatus(&cluster)
		got := rest{version: status.Version.Kubernetes}
		for _, c := range status.Conditions {
			got.conditions = append(got.conditions, c.Type)
		}
		for _, r := range status.Reporters {
			got.reporters = append(got.reporters, r.Name)
		}
		if !reflect.DeepEqual(got, want[cluster.Name]) || len(status.Properties) > 0 {
			t.Errorf("%s, once health is off: %+v with properties %v, want %+v", cluster.Name, got, status.Properties, want[cluster.Name])
		}
	}
}

// awaitCondition waits until a cluster has a condition, and returns the cluster.
func awaitCondition(t *testing.T, clusters typed.ClusterInterface, name, kind string, status metav1.ConditionStatus, reason string) *v1beta1.Cluster {
	t.Helper()
	var found *v1beta1.Cluster
	framework.Eventually(t, fmt.Sprintf("%s of %s to be %s (%s)", kind, name, status, reason), func(ctx context.Context) error {
		cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := conditionOf(cluster, kind); c.Status != status || c.Reason != reason {
			return fmt.Errorf("it is %q (%s): %s", c.Status, c.Reason, c.Message)
		}
		found = cluster
		return nil
	})
	return found
}

func conditionOf(cluster *v1beta1.Cluster, kind string) metav1.Condition {
	if cluster.Status != nil {
		for _, c := range cluster.Status.Conditions {
			if c.Type == kind {
				return c
			}
		}
	}
	return metav1.Condition{}
}

// awaitRunning waits until the controller says at its Lease that both functions run.
func awaitRunning(t *testing.T, host *framework.Host) {
	t.Helper()
	framework.Eventually(t, "the Lease to say that both functions run", func(ctx context.Context) error {
		lease, err := clientset(t, host.Config).CoordinationV1().Leases("default").Get(ctx, "clusterregistry-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status contract.ControllerStatus
		if err := json.Unmarshal([]byte(lease.Annotations[contract.ControllerStatusAnnotation]), &status); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || status.Holder != *lease.Spec.HolderIdentity || len(status.Functions) != 2 {
			return fmt.Errorf("%+v", status)
		}
		for function, is := range status.Functions {
			if is.State != contract.FunctionRunning {
				return fmt.Errorf("%s: %+v", function, is)
			}
		}
		return nil
	})
}

func fingerprintOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("%s is not PEM", file)
	}
	sum := sha256.Sum256(block.Bytes)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// testSteadyFleet waits for a cluster that is registered now to be probed, which is after
// every other one has been probed at least as often, and expects that nothing was
// written of those.
func testSteadyFleet(t *testing.T, clusters typed.ClusterInterface) {
	t.Helper()
	versions := func() map[string]string {
		list, err := clusters.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, cluster := range list.Items {
			if !strings.HasPrefix(cluster.Name, "clock-") {
				out[cluster.Name] = cluster.ResourceVersion
			}
		}
		return out
	}
	before := versions()
	// Each of these turns False after three periods: a clock of the controller's own.
	for round := range 2 {
		clock := fmt.Sprintf("clock-%d", round)
		if _, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clock}, Spec: v1beta1.ClusterSpec{
			Endpoints: []v1beta1.Endpoint{{Name: "e", URL: "https://" + clock + ".invalid"}},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, clusters, clock, "Reachable", metav1.ConditionFalse, "DNSFailed")
	}
	if after := versions(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("in a steady fleet, resource versions went from %v to %v", before, after)
	}
}
