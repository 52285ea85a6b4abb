package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/framework/oldapi"
)

// ofCrinit is a cluster as a person entered it in a registry of crinit, and the spec that a
// client of 2018 sees of it in the registry that it was imported into: addresses are https
// URLs, a range that was left out is spelled out, and providers have names of their own.
type ofCrinit struct{ name, metadata, spec, after string }

func clustersOfCrinit(t *testing.T) []ofCrinit {
	t.Helper()
	ca := marshaled(t, framework.NewAuthority(t, "east").PEM)
	return []ofCrinit{{
		name: "east", metadata: `,"labels":{"region":"eu"},"annotations":{"example.com/note":"line one\nline \"two\": 'three' # four"}`,
		spec: `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"10.0.0.0/8","serverAddress":"10.0.0.1:6443"},{"clientCIDR":"0.0.0.0/0","serverAddress":"https://east.example.com"}],"caBundle":` + ca + `},` +
			`"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"},"config":{"idp-issuer-url":"https://idp.example.com"}},{"name":"machines","type":{"name":"aws"}}]}}`,
		after: `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"10.0.0.0/8","serverAddress":"https://10.0.0.1:6443"},{"clientCIDR":"0.0.0.0/0","serverAddress":"https://east.example.com"}],"caBundle":` + ca + `},` +
			`"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"},"config":{"idp-issuer-url":"https://idp.example.com"}},{"name":"machines","type":{"name":"aws"}}]}}`,
	}, {
		name: "host-only", spec: `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"100.0.0.0"}]}}`,
		after: `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://100.0.0.0"}]},"authInfo":{"providers":null}}`,
	}, {
		name: "planned", spec: `{}`, after: `{"kubernetesApiEndpoints":{},"authInfo":{"providers":null}}`,
	}, {
		name: "two-of-a-name", spec: `{"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"}},{"name":"people"},{"config":{"region":"eu"}}]}}`,
		after: `{"kubernetesApiEndpoints":{},"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"}},{"name":"people-2","type":{}},{"name":"provider-3","type":{},"config":{"region":"eu"}}]}}`,
	}, { // Two fields of metadata that Kubernetes has no more.
		name: "of-its-time", metadata: `,"clusterName":"west","initializers":{"pending":[{"name":"example.com/init"}]}`,
		spec:  `{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"[2001:db8::1]:6443"}]}}`,
		after: `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://[2001:db8::1]:6443"},{"clientCIDR":"::/0","serverAddress":"https://[2001:db8::1]:6443"}]},"authInfo":{"providers":null}}`,
	}}
}

// written is the cluster as it was entered.
func (c ofCrinit) written() string {
	return fmt.Sprintf(`{"metadata":{"name":%q%s},"spec":%s}`, c.name, c.metadata, c.spec)
}

// entered are clusters as they were entered.
func entered(clusters []ofCrinit) []string {
	var out []string
	for _, cluster := range clusters {
		out = append(out, cluster.written())
	}
	return out
}

// refusedOfCrinit are clusters that v0.0.4, which checked nothing but the name, took, each
// with the beginning of the reason for which a registry of today refuses it.
var refusedOfCrinit = map[string]struct{ spec, reason string }{
	"token":    {`{"authInfo":{"providers":[{"name":"people","config":{"token":"geheim"}}]}}`, `cluster "token" is not valid: spec.access[0].provider.config[token]: Forbidden: this key is for a credential`},
	"in-clear": {`{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"http://in-clear.example.com"}]}}`, `cluster "in-clear" is not valid: spec.endpoints[0].url: Invalid value: "http://in-clear.example.com": must be an https URL`},
	"no-range": {`{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"everyone","serverAddress":"a.example.com"}]}}`, `cluster "no-range" is not valid: spec.endpoints[0].clientCIDRs[0]: Invalid value: "everyone"`},
	"no-pem":   {`{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"a.example.com"}],"caBundle":"aGVsbG8="}}`, `cluster "no-pem" is not valid: spec.endpoints[0].caBundle: Invalid value`},
}

// TestImportOfCrinit moves the clusters of a server that answers as cluster-registry v0.0.4
// did, as docs/how-to/migrate.md says: saved with kubectl, and from its context.
func TestImportOfCrinit(t *testing.T) {
	t.Parallel()
	registry, clients, config := independent(t)
	p := plugin{t, registry.Kubeconfig(t, clients.Issue("root", admins))}
	clusters, want := clustersOfCrinit(t), map[string]string{}
	for _, cluster := range clusters {
		want[cluster.name] = "created"
	}
	made := entered(clusters)
	for name, bad := range refusedOfCrinit {
		made = append(made, ofCrinit{name: name, spec: bad.spec}.written())
		want[name] = "refused " + bad.reason
	}
	old := oldapi.Start(t, oldapi.Config{Clusters: made})
	path := written(t, "crinit", string(old.Kubeconfig(t, "crinit", true)))
	from := []string{"--from-kubeconfig", path, "--from-context", "crinit"}

	for _, version := range []string{newest, "v1.32.13"} {
		saved := framework.NewKubectl(t, version, path).Run("get", "clusters.clusterregistry.k8s.io", "--all-namespaces", "--chunk-size=3", "-o", "yaml")
		expectImport(t, p, want, "-f", written(t, "clusters.yaml", saved), "--dry-run=server")
	}
	expectImport(t, p, want, from...)
	expectSeen(t, old.Config(), config, clusters)
	for name := range want {
		if want[name] == "created" {
			want[name] = "same"
		}
	}
	expectImport(t, p, want, from...)
	expectSeen(t, old.Config(), config, clusters)
	for _, request := range old.Requests() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("the registry of crinit was asked to %s", request)
		}
	}
}

// expectSeen compares what a client of 2018 sees in the registry, in each form, with what it
// is to see: of each cluster labels and annotations as in that of crinit.
func expectSeen(t *testing.T, before, after *rest.Config, clusters []ofCrinit) {
	t.Helper()
	// The server's cache, which clients of 2018 read from at once, has all of them after this.
	if _, err := clustersOf(t, after).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, media := range []string{oldapi.JSON, oldapi.Protobuf} {
		old, err := oldapi.NewClient(before, media)
		if err != nil {
			t.Fatal(err)
		}
		now, err := oldapi.NewClient(after, media)
		if err != nil {
			t.Fatal(err)
		}
		list, err := now.List(t.Context())
		if err != nil || len(list.Items) != len(clusters) {
			t.Fatalf("in %s it lists %d clusters, %v; want %d", media, len(list.Items), err, len(clusters))
		}
		for _, cluster := range clusters {
			i := slices.IndexFunc(list.Items, func(c v1alpha1.Cluster) bool { return c.Name == cluster.name })
			want, err := old.Get(t.Context(), cluster.name)
			if err != nil || i < 0 {
				t.Errorf("%s: %d, %v", cluster.name, i, err)
				continue
			}
			got := list.Items[i]
			if spec := marshaled(t, got.Spec); spec != cluster.after {
				t.Errorf("in %s, a client of 2018 sees of %s\n%s\nwant\n%s", media, got.Name, spec, cluster.after)
			}
			if fmt.Sprint(got.Labels, got.Annotations) != fmt.Sprint(want.Labels, want.Annotations) {
				t.Errorf("in %s, %s has %v, %v; want %v, %v", media, got.Name, got.Labels, got.Annotations, want.Labels, want.Annotations)
			}
		}
	}
}

// TestApplyOfCrinit moves the clusters without the plugin, as docs/how-to/migrate.md says:
// what was saved is applied without what a server sets, and clients of 2018 see it as it was.
func TestApplyOfCrinit(t *testing.T) {
	t.Parallel()
	registry, clients, config := independent(t)
	made := clustersOfCrinit(t)
	old := oldapi.Start(t, oldapi.Config{Clusters: entered(made)})
	saved := &unstructured.UnstructuredList{}
	if err := json.Unmarshal([]byte(framework.NewKubectl(t, newest, written(t, "crinit", string(old.Kubeconfig(t, "crinit", true)))).Run("get", "clusters.clusterregistry.k8s.io", "-o", "json")), saved); err != nil {
		t.Fatal(err)
	}
	for i := range saved.Items {
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "selfLink", "clusterName", "initializers"} {
			unstructured.RemoveNestedField(saved.Items[i].Object, "metadata", field)
		}
	}
	file, err := saved.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	// The plugin gives the second of two providers another name; here that is for a person.
	const refused = `The Cluster "two-of-a-name" is invalid: spec.authInfo.providers[1].name: Duplicate value: "people"`
	if _, err := framework.NewKubectl(t, newest, registry.Kubeconfig(t, clients.Issue("root", admins))).Stdin(string(file)).Try("apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("kubectl says %v", err)
	}
	made = slices.DeleteFunc(made, func(c ofCrinit) bool { return c.name == "two-of-a-name" })
	for _, media := range []string{oldapi.JSON, oldapi.Protobuf} {
		before, err := oldapi.NewClient(old.Config(), media)
		if err != nil {
			t.Fatal(err)
		}
		after, err := oldapi.NewClient(config, media)
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range made {
			want, err := before.Get(t.Context(), cluster.name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := after.Get(t.Context(), cluster.name)
			if err != nil || marshaled(t, got.Spec) != marshaled(t, want.Spec) {
				t.Errorf("in %s, a client of 2018 sees of %s\n%s, %v\nwant\n%s", media, cluster.name, marshaled(t, got.Spec), err, marshaled(t, want.Spec))
			}
		}
	}
}

// TestImportOfCrinitFails has sources that can't be read: nothing of them is imported, and
// the person is told why.
func TestImportOfCrinitFails(t *testing.T) {
	t.Parallel()
	registry, clients, config := independent(t)
	p := plugin{t, registry.Kubeconfig(t, clients.Issue("root", admins))}
	for reason, test := range map[string]struct {
		config      oldapi.Config
		certificate bool
		says        string
		code        int
	}{
		"it does not have the group": {oldapi.Config{WithoutGroup: true}, true, `context "crinit" leads to a cluster that has no clusters of a registry, KubeFed or Cluster API`, 1},
		"it has no clusters":         {oldapi.Config{}, true, `the cluster of context "crinit" has no clusters: nothing was imported`, 3},
		"it doesn't know the caller": {oldapi.Config{Clusters: entered(clustersOfCrinit(t))}, false, "nothing was imported", 1},
		"it breaks off in its list":  {oldapi.Config{Clusters: entered(clustersOfCrinit(t)), CutAfter: 300}, true, "nothing was imported", 1},
	} {
		old := oldapi.Start(t, test.config)
		path := written(t, "crinit", string(old.Kubeconfig(t, "crinit", test.certificate)))
		out, says := p.run(test.code, "", "import", "--from-kubeconfig", path, "--from-context", "crinit")
		if !strings.Contains(says, test.says) || out != "" {
			t.Errorf("%s: it says %s%s", reason, out, says)
		}
	}
	list, err := betaOf(t, config).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("the registry has %d clusters, %v", len(list.Items), err)
	}
}

// TestImportOfEqualNames has clusters of one name in two namespaces, which the CRD of
// v0.0.5 and v0.0.6 could have: of those the first becomes a cluster, whenever it is run.
func TestImportOfEqualNames(t *testing.T) {
	t.Parallel()
	registry, clients, config := independent(t)
	p := plugin{t, registry.Kubeconfig(t, clients.Issue("root", admins))}
	const spec = `"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"https://%s.example.com"}]},"authInfo":{"controller":{"kind":"Secret","namespace":"fleet","name":"token"}}}}`
	var made []string
	for _, name := range []string{"a/east", "b/east", "b/west"} {
		namespace, name, _ := strings.Cut(name, "/")
		made = append(made, fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},`+spec, namespace, name, namespace))
	}
	old := oldapi.Start(t, oldapi.Config{Clusters: made, Namespaced: true})
	path := written(t, "crinit", string(old.Kubeconfig(t, "crinit", true)))
	for _, result := range []string{"created", "same"} {
		out, _ := p.run(4, "", "import", "--from-kubeconfig", path, "--from-context", "crinit", "-o", "json")
		var results []struct{ From, Result, Message string }
		if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 3 {
			t.Fatalf("%v: %s", err, out)
		}
		if results[0].From != "Cluster a/east" || results[0].Result != result || results[2].Result != result ||
			results[1].From != "Cluster b/east" || results[1].Result != "refused" || results[1].Message != "the name is taken by Cluster a/east of the same source: rename one of them, or see --name-template" {
			t.Errorf("it reports %+v, want %s", results, result)
		}
	}
	east, err := betaOf(t, config).Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || len(east.Spec.Endpoints) != 1 || east.Spec.Endpoints[0].URL != "https://a.example.com" || len(east.Spec.Access) != 1 {
		t.Errorf("east is %+v, %v", east, err)
	}
}

// TestImportOfCrinitInterrupted kills an import from a registry of crinit in the middle and
// runs it again.
func TestImportOfCrinitInterrupted(t *testing.T) {
	t.Parallel()
	registry, clients, config := independent(t)
	p := plugin{t, registry.Kubeconfig(t, clients.Issue("root", admins))}
	made := clustersOfCrinit(t)
	for i := range many {
		spec := fmt.Sprintf(`{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://many-%03d.example.com"}]},"authInfo":{"providers":null}}`, i)
		made = append(made, ofCrinit{name: fmt.Sprintf("many-%03d", i), spec: spec, after: spec})
	}
	old := oldapi.Start(t, oldapi.Config{Clusters: entered(made)})
	path := written(t, "crinit", string(old.Kubeconfig(t, "crinit", true)))
	args := []string{"import", "--from-kubeconfig", path, "--from-context", "crinit", "-o", "json"}
	clusters := betaOf(t, config)
	before := p.killed(t, clusters, len(made), args...)
	out, _ := p.run(0, "", args...)
	// The last requests of what was killed may have been served after the list.
	if same, created := strings.Count(out, `"result": "same"`), strings.Count(out, `"result": "created"`); same+created != len(made) || same < len(before.Items) || same > len(before.Items)+atOnce {
		t.Errorf("of %d, %d were there: again, %d are the same and %d were created", len(made), len(before.Items), same, created)
	}
	expectSeen(t, old.Config(), config, made)
	for _, cluster := range before.Items {
		after, err := clusters.Get(t.Context(), cluster.Name, metav1.GetOptions{})
		if err != nil || after.UID != cluster.UID || after.ResourceVersion != cluster.ResourceVersion {
			t.Errorf("%s was written again: %v", cluster.Name, err)
		}
	}
}
