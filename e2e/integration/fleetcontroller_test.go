package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// fleetLabel is what the example keeps in the namespace default of each cluster.
const fleetLabel = "fleet.example.com/cluster"

// controlled is a fleet that the example controls through the provider.
type controlled struct {
	t        *testing.T
	clusters typed.ClusterInterface
	members  map[string]*fleetMember
	clients  map[string]*kubernetes.Clientset
	example  *framework.Example
	// engaged counts the engagements of each member, and left the times that it left.
	engaged, left map[string]int
}

// TestFleetController runs the example of the provider for multicluster-runtime over a
// registry with three real API servers: one joins, one leaves, one dies and blocks no one,
// and one changes its CA.
func TestFleetController(t *testing.T) {
	t.Parallel()
	registry, authority, config := independent(t)
	f := &controlled{t: t, clusters: betaOf(t, config), members: map[string]*fleetMember{}, clients: map[string]*kubernetes.Clientset{}, engaged: map[string]int{}, left: map[string]int{}}
	var answers strings.Builder
	network := framework.StartNetwork(t)
	for number, name := range []string{"north", "south", "east"} {
		m := startMember(t, network, name, byte(number+1))
		f.members[name], f.clients[name] = m, clientset(t, m.Config)
		fmt.Fprintf(&answers, "*'\"member\":\"%s\"'*) token=%s ;;\n", name, token(t, m.Host))
	}
	// The plugin knows the clusters by what their entries point to.
	plugin := program(t, "plugin", "case \"$KUBERNETES_EXEC_INFO\" in\n"+answers.String()+"*) exit 1 ;;\nesac\n"+
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$token'"}}'`+"\n")
	f.enter("north")
	f.enter("south")
	f.example = framework.StartExample(t, "fleet-controller", "--kubeconfig="+registry.Kubeconfig(t, authority.Issue("root", admins)), "--access=fleet", "--command="+plugin)
	f.awaitEngaged("north")
	f.awaitEngaged("south")

	t.Run("one joins", func(t *testing.T) {
		f := f.in(t)
		f.enter("east")
		f.awaitEngaged("east")
	})
	t.Run("the registry is down", func(t *testing.T) {
		f := f.in(t)
		registry.Signal(t, syscall.SIGSTOP)
		defer registry.Signal(t, syscall.SIGCONT)
		for name := range f.members {
			f.damage(name)
			f.awaitLabel(name)
		}
	})
	t.Run("one dies", func(t *testing.T) { f.in(t).testDeath() })
	t.Run("one changes its CA", func(t *testing.T) { f.in(t).testCA() })
	t.Run("one leaves", func(t *testing.T) {
		f := f.in(t)
		f.leave("south")
		f.damage("south")
		f.damage("east")
		f.awaitLabel("east")
		if label, err := f.label(t.Context(), "south"); err != nil || label != "" {
			t.Errorf("south, which has left, has the label %q, %v", label, err)
		}
	})
}

// testDeath kills a member. Others are controlled, join and leave meanwhile; it is controlled
// again, under each of its names, once it is back.
func (f *controlled) testDeath() {
	f.members["north"].Kill()
	f.damage("east")
	f.awaitLabel("east")
	// An entry that leads to it and is said to be available: no one has noticed yet.
	f.leave("north")
	f.enter("north")
	framework.Eventually(f.t, "north to be tried in vain", func(context.Context) error {
		return f.example.Said(1, "could not be engaged", `"cluster":"north"`)
	})
	f.leave("south")
	f.enter("south")
	f.awaitEngaged("south")
	f.members["north"].Restart()
	f.damage("north")
	f.awaitEngaged("north")
}

// testCA has a member show a certificate of another CA. It is engaged again with that one
// when its entry has it, and was reported as available with it.
func (f *controlled) testCA() {
	south := f.members["south"]
	south.ca = framework.NewAuthority(f.t, "south-ca-2")
	south.serving.Replace(south.ca.Issue("south", nil, serverName))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(south.ca.PEM)
	framework.Eventually(f.t, "south to show its new certificate", func(ctx context.Context) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", strings.TrimPrefix(south.url(f.t), "https://"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
	c, err := f.clusters.Get(f.t.Context(), "south", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	c.Spec.Endpoints[0].CABundle = south.ca.PEM
	if c, err = f.clusters.Update(f.t.Context(), c, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	framework.Eventually(f.t, "south to be disengaged", func(context.Context) error {
		return f.example.Said(1, "Disengaging a cluster", `"cluster":"south"`, "has changed")
	})
	f.damage("south")
	f.report(c)
	f.awaitEngaged("south")
}

// in returns the fleet for a part of the test.
func (f *controlled) in(t *testing.T) *controlled {
	part := *f
	part.t = t
	return &part
}

// enter writes the entry of a member, as available.
func (f *controlled) enter(name string) {
	f.t.Helper()
	m := f.members[name]
	c, err := f.clusters.Create(f.t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{
		Endpoints: []v1beta1.Endpoint{{Name: "main", URL: m.url(f.t), CABundle: m.ca.PEM, TLSServerName: serverName}},
		Access:    []v1beta1.Access{{Name: "fleet", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: "plugin", Config: map[string]string{"member": name}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.report(c)
}

// leave deletes the entry of a member, and waits until it is disengaged.
func (f *controlled) leave(name string) {
	f.t.Helper()
	f.left[name]++
	if err := f.clusters.Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
	framework.Eventually(f.t, name+" to be disengaged", func(context.Context) error {
		return f.example.Said(f.left[name], "Disengaging a cluster", `"cluster":"`+name+`"`, "no such cluster")
	})
}

// report says that a cluster is available, as it is entered.
func (f *controlled) report(c *v1beta1.Cluster) {
	f.t.Helper()
	c.Status = &v1beta1.ClusterStatus{Conditions: []metav1.Condition{{
		Type: v1beta1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Tested", LastTransitionTime: metav1.Now(), ObservedGeneration: c.Generation,
	}}}
	if _, err := f.clusters.UpdateStatus(f.t.Context(), c, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// awaitEngaged waits until a member is engaged once more, and controlled.
func (f *controlled) awaitEngaged(name string) {
	f.t.Helper()
	f.engaged[name]++
	framework.Eventually(f.t, name+" to be engaged", func(context.Context) error {
		return f.example.Said(f.engaged[name], "Engaged a cluster", `"cluster":"`+name+`"`)
	})
	f.awaitLabel(name)
}

func (f *controlled) awaitLabel(name string) {
	f.t.Helper()
	framework.Eventually(f.t, name+" to have its label", func(ctx context.Context) error {
		if label, err := f.label(ctx, name); err != nil || label != name {
			return fmt.Errorf("it has the label %q, %w", label, err)
		}
		return nil
	})
}

func (f *controlled) label(ctx context.Context, name string) (string, error) {
	namespace, err := f.clients[name].CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return namespace.Labels[fleetLabel], nil
}

// damage takes the label of a member away, once it answers.
func (f *controlled) damage(name string) {
	f.t.Helper()
	framework.Eventually(f.t, name+" to lose its label", func(ctx context.Context) error {
		_, err := f.clients[name].CoreV1().Namespaces().Patch(ctx, metav1.NamespaceDefault, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+fleetLabel+`":null}}}`), metav1.PatchOptions{})
		return err
	})
}
