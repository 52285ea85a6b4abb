package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// many is how many clusters are moved, beside one that uses every field.
const many = 60

// testTransfer moves the clusters of a registry to another one, and those of other
// projects into it.
func testTransfer(t *testing.T, members map[string]*fleetMember) {
	source, sourceClients, sourceConfig := independent(t)
	target, targetClients, targetConfig := independent(t)
	from, to := plugin{t, source.Kubeconfig(t, sourceClients.Issue("root", admins))}, plugin{t, target.Kubeconfig(t, targetClients.Issue("root", admins))}
	old, clusters := betaOf(t, sourceConfig), betaOf(t, targetConfig)
	fill(t, old)

	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, from, to, old, clusters) })
	t.Run("without the status", func(t *testing.T) {
		third, clients, _ := independent(t)
		q := plugin{t, third.Kubeconfig(t, clients.Issue("root", admins))}
		before, _ := from.run(0, "", "export")
		q.run(0, before, "import", "-f", "-")
		after, _ := q.run(0, "", "export", "--with-status")
		if after != before || strings.Contains(after, "\n  status:") {
			t.Errorf("without the status, it comes out as\n%.2000s\nwant\n%.2000s", after, before)
		}
	})
	t.Run("v1alpha1", func(t *testing.T) { testFromV1alpha1(t, source, sourceClients, target, targetClients) })
	t.Run("foreign", func(t *testing.T) { testForeign(t, members, to, clusters) })
}

// fill enters clusters with a status in a registry.
func fill(t *testing.T, clusters typed.ClusterInterface) {
	t.Helper()
	// Only this one has an id, and it is the last: a registry keeps that of a request that
	// was cut off for two minutes.
	made := createRich(t, clusters, "rich")
	made.Labels, made.Annotations = map[string]string{"region": "eu"}, map[string]string{"example.com/note": "line one\nline \"two\": 'three' # four\n", "example.com/number": "007"}
	if _, err := clusters.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		name := fmt.Sprintf("many-%03d", i)
		made, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com"}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made.Status = richStatus()
		if _, err := clusters.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// killed kills an import of so many clusters in the middle, and returns those that it has
// entered.
func (p plugin) killed(t *testing.T, clusters typed.ClusterInterface, all int, args ...string) *v1beta1.ClusterList {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(framework.Root(t), "bin", "kubectl-registry"), slices.Concat([]string{"--kubeconfig=" + p.kubeconfig}, args)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the import to have begun", func(ctx context.Context) error {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) < 3 {
			err = fmt.Errorf("it has entered %d", len(list.Items))
		}
		return err
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its error is that of the kill
	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) >= all {
		t.Fatalf("the import was done before it was killed: %d, %v", len(list.Items), err)
	}
	return list
}

// atOnce is how many clusters an import enters at a time: each may be under way when it is killed.
const atOnce = 8

// testInterrupted kills an import in the middle, runs it again, and compares the two
// registries.
func testInterrupted(t *testing.T, from, to plugin, old, clusters typed.ClusterInterface) {
	from.t, to.t = t, t
	before, _ := from.run(0, "", "export", "--with-status")
	file := written(t, "clusters.yaml", before)
	list := to.killed(t, clusters, many+1, "import", "--with-status", "-f", file)

	report, _ := to.run(0, "", "import", "--with-status", "-f", file, "-o", "json")
	if same, created := strings.Count(report, `"result": "same"`), strings.Count(report, `"result": "created"`); same < len(list.Items)-atOnce || created > many+1-len(list.Items) || created < many+1-len(list.Items)-atOnce {
		t.Errorf("of %d, %d were there: again, %d are the same and %d were created", many+1, len(list.Items), same, created)
	}
	after, _ := to.run(0, "", "export", "--with-status")
	if after != before {
		t.Errorf("the other registry has\n%.2000s\nwant\n%.2000s", after, before)
	}
	// The file leaves out only what a server sets.
	for _, name := range []string{"rich", "many-000", fmt.Sprintf("many-%03d", many-1)} {
		want, err := old.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.UID == want.UID || got.UID == "" {
			t.Errorf("%s has the UID %q, and had %q", name, got.UID, want.UID)
		}
		// What was observed of the spec is of the generation that the spec has here.
		want.Status.ObservedGeneration = got.Generation
		for _, conditions := range [][]metav1.Condition{want.Status.Conditions, want.Status.Reporters[0].Conditions} {
			for i := range conditions {
				conditions[i].ObservedGeneration = got.Generation
			}
		}
		for _, c := range []*v1beta1.Cluster{got, want} {
			c.UID, c.ResourceVersion, c.CreationTimestamp, c.ManagedFields, c.Generation = "", "", metav1.Time{}, nil, 0
		}
		if !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v\nwant\n%+v", name, got, want)
		}
	}
	report, _ = to.run(0, "", "import", "--with-status", "-f", file, "-o", "json")
	if strings.Count(report, `"result": "same"`) != many+1 {
		t.Errorf("once more, it reports %s", report)
	}
}

// testFromV1alpha1 moves what a client of v1alpha1 gets from a registry to another one.
func testFromV1alpha1(t *testing.T, source *framework.Registry, sourceClients *framework.Authority, target *framework.Registry, targetClients *framework.Authority) {
	const resource, old = "clusters.v1alpha1.clusterregistry.k8s.io", `{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"alpha","labels":{"a":"b"}},"spec":{` +
		`"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"10.0.0.0/8","serverAddress":"10.0.0.1:6443"},{"clientCIDR":"0.0.0.0/0","serverAddress":"https://alpha.example.com"}]},` +
		`"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"},"config":{"issuer":"https://idp.example.com"}}]}}}`
	from := framework.NewKubectl(t, newest, source.Kubeconfig(t, sourceClients.Issue("root", admins)))
	kubeconfig := target.Kubeconfig(t, targetClients.Issue("root", admins))
	to := framework.NewKubectl(t, newest, kubeconfig)
	from.Stdin(old).Run("create", "-f", "-")
	file := written(t, "v1alpha1.yaml", from.Run("get", resource, "alpha", "-o", "yaml"))
	p := plugin{t, kubeconfig}
	if out, _ := p.run(0, "", "import", "-f", file, "-o", "json"); strings.Count(out, `"result": "created"`) != 1 {
		t.Errorf("it reports %s", out)
	}
	const shown = "jsonpath={.metadata.labels} {.metadata.annotations} {.spec}"
	if got, want := to.Run("get", "crc", "alpha", "-o", shown), from.Run("get", "crc", "alpha", "-o", shown); got != want || !strings.Contains(got, "idp.example.com") {
		t.Errorf("the cluster is %s, want %s", got, want)
	}
	if out, _ := p.run(0, "", "import", "-f", file, "-o", "json"); strings.Count(out, `"result": "same"`) != 1 {
		t.Errorf("again, it reports %s", out)
	}
}
