package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// foreignSpecs are what the objects in testdata/foreign become, without the UIDs of their
// source references.
var foreignSpecs = map[string]string{
	"crd": `{"endpoints":[{"name":"endpoint-1","url":"https://crd.example.com","clientCIDRs":["10.0.0.0/8"]},{"name":"endpoint-2","url":"https://192.0.2.7:6443","clientCIDRs":["0.0.0.0/0"]}],` +
		`"access":[{"name":"user","audience":"User","objectRef":{"kind":"OIDC","name":"people"}},{"name":"controller","audience":"Controller","objectRef":{"kind":"Secret","namespace":"fleet","name":"token"}}]}`,
	"fed": `{"endpoints":[{"name":"main","url":"https://fed.example.com","proxyURL":"http://proxy.example.com:3128"}],` +
		`"access":[{"name":"kubefed","audience":"Controller","objectRef":{"apiVersion":"v1","kind":"Secret","namespace":"kube-public","name":"fed-abc"}}],` +
		`"taints":[{"key":"example.com/drain","value":"now","effect":"NoSchedule"}],"sourceRef":{"apiVersion":"core.kubefed.io/v1beta1","kind":"KubeFedCluster","namespace":"kube-public","name":"fed"}}`,
	"capi": `{"endpoints":[{"name":"main","url":"https://[2001:db8::1]:6443"}],"sourceRef":{"apiVersion":"cluster.x-k8s.io/%s","kind":"Cluster","namespace":"default","name":"capi"}}`,
}

// testForeign imports the clusters of other projects from real API servers that have
// them, and from files.
func testForeign(t *testing.T, members map[string]*fleetMember, p plugin, clusters typed.ClusterInterface) {
	p.t = t
	path := kubeconfig(t, members["north"], members["west"], members["south"])
	north := foreignObjects(t, path, "north", "v1beta1")
	install(t, north, "crds.yaml")
	objects := filepath.Join("testdata", "foreign", "objects.yaml")
	framework.Eventually(t, "the host to serve the kinds of others", func(context.Context) error {
		_, err := north.Try("apply", "--context=north", "-f", objects)
		return err
	})

	from := []string{"--from-kubeconfig", path, "--from-context", "north"}
	expectImport(t, p, map[string]string{"crd": "created", "fed": "created", "fed-blind": "refused it has disabledTLSValidations", "capi": "created its CA and id are not in the object", "capi-pending": "refused it has no spec.controlPlaneEndpoint yet"}, from...)
	expectSpecs(t, clusters, map[string]string{"crd": "", "fed": "", "capi": "v1beta1"})
	// Of a management cluster that serves a newer version from now on, that one is read.
	again := map[string]string{"crd": "same", "fed": "same", "fed-blind": "refused", "capi": "same", "capi-pending": "refused"}
	foreignObjects(t, path, "north", "v1beta1", "v1beta2")
	expectImport(t, p, again, from...)
	// The same from a file.
	var file strings.Builder
	for _, resource := range []string{"clusters.clusterregistry.k8s.io", "kubefedclusters", "clusters.v1beta2.cluster.x-k8s.io"} {
		file.WriteString("---\n" + north.Run("--context=north", "get", resource, "--all-namespaces", "-o", "yaml"))
	}
	newer := written(t, "foreign.yaml", file.String())
	expectImport(t, p, again, "-f", newer)
	// Another management cluster has a cluster of the same name.
	foreignObjects(t, path, "west", "v1beta1")
	from[3] = "west"
	expectImport(t, p, map[string]string{"capi": "differs", "capi-pending": "refused"}, from...)
	expectImport(t, p, map[string]string{"capi": "refused spec.sourceRef of the entry names another object, Cluster default/capi with the UID", "capi-pending": "refused"}, append(from, "--overwrite")...)
	remove(t, clusters)
	again["crd"], again["fed"], again["capi"] = "created", "created", "created"
	expectImport(t, p, again, "-f", newer)
	expectSpecs(t, clusters, map[string]string{"crd": "", "fed": "", "capi": "v1beta2"})
	remove(t, clusters)
	// What a person has written as a manifest, without what a server sets.
	expectImport(t, p, map[string]string{"crd": "created", "fed": "created", "fed-blind": "refused"}, "-f", objects)
	expectSpecs(t, clusters, map[string]string{"crd": "", "fed": ""})
	if _, text := p.run(1, "", "import", "--from-kubeconfig", path, "--from-context", "south"); !strings.Contains(text, "has no clusters of a registry, KubeFed or Cluster API") {
		t.Errorf("of a cluster that has none: %s", text)
	}
}

// remove deletes the clusters that objects of other projects have become.
func remove(t *testing.T, clusters typed.ClusterInterface) {
	t.Helper()
	for name := range foreignSpecs {
		if err := clusters.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// foreignObjects has a member serve Cluster API's clusters in the given versions, the
// last of which is stored, and returns kubectl for the members.
func foreignObjects(t *testing.T, path, cluster string, versions ...string) *framework.Kubectl {
	t.Helper()
	kubectl := framework.NewKubectl(t, newest, path)
	var served []string
	for i, version := range versions {
		served = append(served, fmt.Sprintf(`{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, version, i == len(versions)-1))
	}
	crd := content(t, filepath.Join("testdata", "foreign", "clusterapi.yaml"))
	crd = strings.Replace(crd, "versions: []", "versions: ["+strings.Join(served, ", ")+"]", 1)
	kubectl.Stdin(crd).Run("apply", "--context="+cluster, "-f", "-")
	kubectl.Established("--context="+cluster, "crd/clusters.cluster.x-k8s.io")
	framework.Eventually(t, "the newest version to be served", func(context.Context) error {
		_, err := kubectl.Try("get", "--context="+cluster, "clusters."+versions[len(versions)-1]+".cluster.x-k8s.io")
		return err
	})
	kubectl.Run("apply", "--context="+cluster, "-f", filepath.Join("testdata", "foreign", "clusterapi-objects.yaml"))
	return kubectl
}

// install applies CRDs to the north and waits until they are served.
func install(t *testing.T, kubectl *framework.Kubectl, file string) {
	t.Helper()
	path := filepath.Join("testdata", "foreign", file)
	kubectl.Run("apply", "--context=north", "-f", path)
	kubectl.Established("--context=north", "-f", path)
}

// expectImport imports, and compares what is reported of each cluster: a result, and the
// beginning of a message. It exits with 4 unless all is well.
func expectImport(t *testing.T, p plugin, want map[string]string, args ...string) {
	t.Helper()
	code := 0
	for _, result := range want {
		if strings.HasPrefix(result, "refused") || strings.HasPrefix(result, "differs") {
			code = 4
		}
	}
	out, _ := p.run(code, "", append([]string{"import", "-o", "json"}, args...)...)
	var results []struct{ From, Result, Message string }
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]string{}
	for _, result := range results {
		_, name, _ := strings.Cut(result.From, "/")
		if name == "" {
			_, name, _ = strings.Cut(result.From, " ")
		}
		got[name] = result.Result + " " + result.Message
	}
	for name, result := range want {
		if !strings.HasPrefix(got[name], result) {
			t.Errorf("import %s: %s is %q, want %q", strings.Join(args, " "), name, got[name], result)
		}
	}
	if len(got) != len(want) {
		t.Errorf("import %s: it reports %v, want %v", strings.Join(args, " "), slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// expectSpecs compares clusters with what they should have become, from the version of
// the object that is given.
func expectSpecs(t *testing.T, clusters typed.ClusterInterface, versions map[string]string) {
	t.Helper()
	for name, version := range versions {
		got, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if source := got.Spec.SourceRef; source != nil {
			source.UID = ""
		}
		want := strings.Replace(foreignSpecs[name], "%s", version, 1)
		if spec := marshaled(t, got.Spec); spec != want || len(got.Annotations) > 0 {
			t.Errorf("%s becomes\n%s, %v\nwant\n%s", name, spec, got.Annotations, want)
		}
	}
}
