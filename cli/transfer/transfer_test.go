package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// foreign has an object of each form, and what it becomes.
var foreign = []struct{ reason, object, want string }{
	{"our own", `{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east, uid: x, resourceVersion: "7", labels: {a: b}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, spec: {displayName: East, id: one, endpoints: [{name: main, url: "https://e.example"}]}}`,
		`{metadata: {name: east, labels: {a: b}}, spec: {displayName: East, id: one, endpoints: [{name: main, url: "https://e.example"}]}}`},
	{"v0.0.4", `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: east}, spec: {kubernetesApiEndpoints: {serverEndpoints: [{clientCIDR: 0.0.0.0/0, serverAddress: "10.0.0.1:6443"}]}, authInfo: {providers: [{name: people, type: {name: oidc}, config: {issuer: "https://login.example"}}]}}, status: {}}`,
		`{metadata: {name: east}, spec: {endpoints: [{name: endpoint-1, url: "https://10.0.0.1:6443", clientCIDRs: [0.0.0.0/0]}], access: [{name: people, audience: User, provider: {type: oidc, config: {issuer: "https://login.example"}}}]}}`},
	{"v0.0.4, with metadata of its time", `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: east, selfLink: /apis/clusterregistry.k8s.io/v1alpha1/clusters/east, clusterName: west, initializers: {pending: [{name: init.example}]}}, spec: {kubernetesApiEndpoints: {}, authInfo: {providers: null}}, status: {}}`,
		`{metadata: {name: east}}`},
	{"the CRD of v0.0.6", `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: east, namespace: kube-multicluster-public}, spec: {kubernetesApiEndpoints: {serverEndpoints: [{clientCIDR: 10.0.0.0/8, serverAddress: "https://e.example"}]}, authInfo: {controller: {kind: Secret, namespace: fleet, name: token}, user: {kind: OIDC, name: people}}}, status: {conditions: [{type: OK, status: "True", lastHeartbeatTime: "2018-01-01T00:00:00Z"}]}}`,
		`{metadata: {name: east}, spec: {endpoints: [{name: endpoint-1, url: "https://e.example", clientCIDRs: [10.0.0.0/8]}], access: [{name: user, audience: User, objectRef: {kind: OIDC, name: people}}, {name: controller, audience: Controller, objectRef: {kind: Secret, namespace: fleet, name: token}}]}}`},
	{"KubeFed", `{apiVersion: core.kubefed.io/v1beta1, kind: KubeFedCluster, metadata: {name: east, namespace: kube-federation-system, uid: u1, labels: {a: b}}, spec: {apiEndpoint: "https://e.example/", secretRef: {name: east-abc}, proxyURL: "http://p.example:3128", taints: [{key: k, effect: NoSchedule}]}, status: {conditions: []}}`,
		`{metadata: {name: east, labels: {a: b}}, spec: {endpoints: [{name: main, url: "https://e.example", proxyURL: "http://p.example:3128"}], taints: [{key: k, effect: NoSchedule}], access: [{name: kubefed, audience: Controller, objectRef: {apiVersion: v1, kind: Secret, namespace: kube-federation-system, name: east-abc}}], sourceRef: {apiVersion: core.kubefed.io/v1beta1, kind: KubeFedCluster, namespace: kube-federation-system, name: east, uid: u1}}}`},
	{"Cluster API", `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: east, namespace: team, uid: u2, labels: {a: b}, annotations: {c: d}}, spec: {controlPlaneEndpoint: {host: "2001:db8::1", port: 6443}}}`,
		`{metadata: {name: east, labels: {a: b}}, spec: {endpoints: [{name: main, url: "https://[2001:db8::1]:6443"}], sourceRef: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: team, name: east, uid: u2}}}`},
	{"Cluster API of EKS", `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: east, namespace: team, uid: u2}, spec: {controlPlaneEndpoint: {host: "https://ABCDEF.gr7.us-east-1.eks.amazonaws.com", port: 443}}}`,
		`{metadata: {name: east}, spec: {endpoints: [{name: main, url: "https://abcdef.gr7.us-east-1.eks.amazonaws.com:443"}], sourceRef: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: team, name: east, uid: u2}}}`},
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := readFile("-", strings.NewReader(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

// TestImportOfANewerVersion expects that an object that is read in another version than
// before, or from a file that doesn't have its UID, is still the one that it was.
func TestImportOfANewerVersion(t *testing.T) {
	env := commandtest.New(t)
	run := func(version, uid, want string) {
		t.Helper()
		env.Stdout.Reset()
		env.Stdin.WriteString(`{apiVersion: cluster.x-k8s.io/` + version + `, kind: Cluster, metadata: {name: east, namespace: team, uid: ` + uid + `}, spec: {controlPlaneEndpoint: {host: e.example, port: 6443}}}`)
		text, _ := env.Run(t, NewImport(env.Env), "-f", "-", "-o", "json")
		if !strings.Contains(env.Stdout.String(), `"result": "`+want+`"`) {
			t.Errorf("%s, UID %s: %s%s", version, uid, env.Stdout, text)
		}
	}
	run("v1beta1", "u1", created)
	run("v1beta2", "u1", same)
	run("v1beta2", "", same)
	run("v1beta2", "u2", differs)
}

func TestForeignForms(t *testing.T) {
	for _, test := range foreign {
		got := entryOf(parse(t, test.object), placeOfName)
		if got.err != nil {
			t.Errorf("%s: %v", test.reason, got.err)
			continue
		}
		want := &v1beta1.Cluster{}
		if err := yaml.UnmarshalStrict([]byte(test.want), want); err != nil {
			t.Fatal(err)
		}
		if got.cluster.String() != want.String() {
			t.Errorf("%s becomes\n%s\nwant\n%s", test.reason, got.cluster, want)
		}
	}
}

// TestRefusedEntries has what can't be a cluster, with the reason that a person sees.
func TestRefusedEntries(t *testing.T) {
	for _, test := range []struct{ reason, object, text string }{
		{"another kind", `{apiVersion: v1, kind: ConfigMap, metadata: {name: east}}`, `ConfigMap of "v1" is not a form that import reads: it reads ClusterSet (v1beta1) and Cluster of clusterregistry.k8s.io (v1beta1, v1alpha1) and of cluster.x-k8s.io, and KubeFedCluster`},
		{"an unknown field", `{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east}, spec: {endpoint: x}}`, `it has fields that are not known, or of the wrong type: strict decoding error: unknown field "spec.endpoint"`},
		{"a credential", `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: east}, spec: {authInfo: {providers: [{name: p, config: {token: geheim}}]}}}`, `cluster "east" is not valid: spec.access[0].provider.config[token]: Forbidden: this key is for a credential`},
		{"no verification", `{apiVersion: core.kubefed.io/v1beta1, kind: KubeFedCluster, metadata: {name: east}, spec: {apiEndpoint: "https://e.example", disabledTLSValidations: ["*"]}}`, `it has disabledTLSValidations (*), and a registry takes only endpoints whose certificate is verified: give it a CA bundle that is valid, or join it`},
		{"no TLS", `{apiVersion: core.kubefed.io/v1beta1, kind: KubeFedCluster, metadata: {name: east}, spec: {apiEndpoint: "http://e.example"}}`, `spec.endpoints[0].url: Invalid value`},
		{"no endpoint", `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: east}, spec: {}}`, `it has no spec.controlPlaneEndpoint yet: import it again when its control plane is up`},
		{"an endpoint that is no host", `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: east}, spec: {controlPlaneEndpoint: {host: "a@evil.example", port: 443}}}`, `spec.controlPlaneEndpoint.host "a@evil.example" is neither an IP address nor the name of a host`},
		{"a user that is no reference", `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: east}, spec: {authInfo: {user: geheim}}}`, `spec.authInfo.user is not a reference to an object`},
		{"a reference of another form", `{apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster, metadata: {name: east}, spec: {authInfo: {controller: {name: 1}}}}`, `spec.authInfo.controller is not a reference to an object`},
		{"a KubeFedCluster of another form", `{apiVersion: core.kubefed.io/v1beta1, kind: KubeFedCluster, metadata: {name: east}, spec: {apiEndpoint: 1}}`, `it is not a valid KubeFedCluster: cannot`},
		{"a name that no registry takes", `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: east.eu}, spec: {controlPlaneEndpoint: {host: e.example}}}`, `metadata.name: Invalid value: "east.eu"`},
	} {
		if got := entryOf(parse(t, test.object), placeOfName); got.err == nil || !strings.Contains(got.err.Error(), test.text) || strings.Contains(got.err.Error(), "geheim") {
			t.Errorf("%s: %v", test.reason, got.err)
		}
	}
}

func some(name, id string) *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "5", Labels: map[string]string{"a": "b"}},
		Spec:       v1beta1.ClusterSpec{ID: id, Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example"}}},
		Status:     &v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: "v1.37.1"}},
	}
}

func export(t *testing.T, env *commandtest.Env, args ...string) string {
	t.Helper()
	env.Stdout.Reset()
	if text, code := env.Run(t, NewExport(env.Env), args...); code != 0 {
		t.Fatal(text)
	}
	return env.Stdout.String()
}

// TestRoundTrip expects that an export, imported elsewhere, is exported as it was.
func TestRoundTrip(t *testing.T) {
	source := commandtest.New(t, some("east", "one"), some("west", "two"))
	for _, args := range [][]string{nil, {"--with-status"}, {"--with-status", "-o", "json"}} {
		before := export(t, source, args...)
		if strings.Contains(before, "resourceVersion") || strings.Contains(before, "v1.37.1") != (args != nil) {
			t.Errorf("%v: it exports\n%s", args, before)
		}
		target := commandtest.New(t)
		target.Stdin.WriteString(before)
		importArgs := []string{"-f", "-"}
		if args != nil {
			importArgs = append(importArgs, "--with-status")
		}
		if text, code := target.Run(t, NewImport(target.Env), importArgs...); code != 0 {
			t.Fatal(text, target.Stdout)
		}
		if after := export(t, target, args...); after != before {
			t.Errorf("%v: it comes out as\n%s\nand not as\n%s", args, after, before)
		}
		// Again it is the same, and says so.
		target.Stdout.Reset()
		target.Stdin.WriteString(before)
		if text, code := target.Run(t, NewImport(target.Env), append(importArgs, "-o", "json")...); code != 0 {
			t.Fatal(text)
		}
		var results []Result
		if err := json.Unmarshal(target.Stdout.Bytes(), &results); err != nil || len(results) != 2 || results[0].Result != same || results[1].Result != same {
			t.Errorf("again: %s, %v", target.Stdout, err)
		}
	}
}

// TestModesAreExportedAsWritten expects the mode of a program in the file as the entry has
// it, and that an entry is the same as its file.
func TestModesAreExportedAsWritten(t *testing.T) {
	of := func(mode v1beta1.InteractiveMode) *v1beta1.Cluster {
		out := some("east", "one")
		out.Spec.Access = []v1beta1.Access{{Name: "users", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "login", InteractiveMode: mode}}}
		return out
	}
	for _, mode := range []v1beta1.InteractiveMode{"", v1beta1.InteractiveIfAvailable, v1beta1.InteractiveNever} {
		file := export(t, commandtest.New(t, of(mode)))
		if said := strings.Contains(file, "interactiveMode: "+string(mode)+"\n"); said != (mode != "") {
			t.Errorf("%q is exported as:\n%s", mode, file)
		}
		target := commandtest.New(t, of(mode))
		target.Stdin.WriteString(file)
		text, _ := target.Run(t, NewImport(target.Env), "-f", "-", "-o", "json")
		if !strings.Contains(target.Stdout.String(), `"result": "`+same+`"`) {
			t.Errorf("%q: %s\n%s", mode, text, target.Stdout)
		}
	}
}

// TestImportReport expects a result for each entry, whatever is wrong with others.
func TestImportReport(t *testing.T) {
	other := some("north", "four")
	other.Spec.DisplayName = "theirs"
	const file = `apiVersion: clusterregistry.k8s.io/v1beta1
kind: ClusterList
items:
- {metadata: {name: east}, spec: {id: one}}
- {metadata: {name: east}, spec: {id: other}}
---
apiVersion: v1
kind: Secret
metadata: {name: "s\e[31m"}
---
---
{"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "north", "labels": {"a": "b"}}, "spec": {"id": "four", "endpoints": [{"name": "main", "url": "https://north.example"}]}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: south, namespace: team}
spec: {controlPlaneEndpoint: {host: s.example}}
`
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		north  string
		writes bool
	}{"": {differs, true}, "--overwrite": {updated, true}, "--overwrite --dry-run=client": {updated, false}} {
		env := commandtest.New(t, other)
		text, code := env.Run(t, NewImport(env.Env), append(strings.Fields(args), "-f", path, "-o", "json")...)
		if code != 4 || !strings.Contains(text, "of 5 entries differ or were refused") {
			t.Fatalf("%q: %d, %s", args, code, text)
		}
		var results []Result
		if err := json.Unmarshal(env.Stdout.Bytes(), &results); err != nil || len(results) != 5 {
			t.Fatalf("%q: %v, %s", args, err, env.Stdout)
		}
		for i, wanted := range []struct{ result, text string }{
			{created, ""}, {refused, "the name is taken by Cluster east of the same source: rename one of them"}, {refused, "is not a form that import reads"}, {want.north, ""}, {created, `"kubectl registry join" adds them`},
		} {
			if got := results[i]; got.Result != wanted.result || !strings.Contains(got.Message, wanted.text) || strings.Contains(got.From, "\x1b") {
				t.Errorf("%q: entry %d is %+v", args, i, got)
			}
		}
		list, err := env.Clusters.ClusterregistryV1beta1().Clusters().List(t.Context(), metav1.ListOptions{})
		if err != nil || (len(list.Items) == 3) != want.writes {
			t.Errorf("%q: the registry has %d, %v", args, len(list.Items), err)
		}
	}
}

// TestImportOfOneIDTwice expects that a cluster does not get two names.
func TestImportOfOneIDTwice(t *testing.T) {
	env := commandtest.New(t)
	for _, name := range []string{"a", "b"} {
		env.Stdin.WriteString("---\n{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: " + name + "}, spec: {id: one}}\n")
	}
	text, code := env.Run(t, NewImport(env.Env), "-f", "-")
	if code != 4 || !strings.Contains(env.Stdout.String(), "its id is that of Cluster a of the same source") {
		t.Errorf("%d, %s\n%s", code, text, env.Stdout)
	}
}

// TestImportStops expects that a registry that fails ends an import with where it was.
func TestImportStops(t *testing.T) {
	env, calls := commandtest.New(t), 0
	env.Clusters.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		calls++
		return calls == 2, nil, apierrors.NewServiceUnavailable("no endpoints")
	})
	env.Stdin.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	env.Stdin.WriteString("- {apiVersion: v1, kind: Secret, metadata: {name: x}}\n")
	for _, name := range []string{"a", "b", "c"} {
		env.Stdin.WriteString("- {apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: " + name + "}}\n")
	}
	i := &importer{env: env.Env, workers: 1}
	text, code := env.Run(t, i.command(), "-f", "-")
	if code != 1 || !strings.HasPrefix(text, "stopped at entry 3 of 4, Cluster b: enter it: the registry (context hub) is not available") || !strings.HasSuffix(text, "; 1 entries are done, 1 differ or were refused, and running this again continues") {
		t.Errorf("%d, %s", code, text)
	}
	if !strings.Contains(env.Stdout.String(), "Cluster a") {
		t.Errorf("what was done is not reported: %s", env.Stdout)
	}
}

// TestImportWaitsForAnID expects that an import that runs again after it was killed enters
// the cluster whose id the registry still keeps for the request that was cut off.
func TestImportWaitsForAnID(t *testing.T) {
	for _, test := range []struct {
		conflicts, code int
		result          string
	}{{3, 0, created}, {1000, 4, refused}} {
		env, calls := commandtest.New(t), 0
		env.Clusters.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			calls++
			return calls <= test.conflicts, nil, apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "a", errors.New("another request is giving its spec.id to a cluster"))
		})
		env.Stdin.WriteString("{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: a}, spec: {id: one}}\n")
		i := &importer{env: env.Env, pause: time.Millisecond, held: 20 * time.Millisecond}
		text, code := env.Run(t, i.command(), "-f", "-", "-o", "json")
		if code != test.code || !strings.Contains(env.Stdout.String(), `"result": "`+test.result+`"`) {
			t.Errorf("%d conflicts: %d, %s, %s", test.conflicts, code, text, env.Stdout)
		}
	}
}

func TestReadContext(t *testing.T) {
	lists := map[schema.GroupVersionResource]string{}
	for _, versions := range sources {
		for _, resource := range versions {
			lists[resource] = "ClusterList"
		}
	}
	missing := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		if resource.Group == "clusterregistry.k8s.io" || resource.Version == "v1beta2" {
			return true, nil, missing
		}
		return true, &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{"kind": resource.Resource + "/" + resource.Version}}}}, nil
	})
	objects, err := readSources(t.Context(), client, "host")
	if err != nil || len(objects) != 2 || objects[0].GetKind() != "kubefedclusters/v1beta1" || objects[1].GetKind() != "clusters/v1beta1" {
		t.Errorf("it reads %v, %v", objects, err)
	}
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, missing })
	if _, err := readSources(t.Context(), client, "host"); err == nil || err.Error() != `context "host" leads to a cluster that has no clusters of a registry, KubeFed or Cluster API: name another one` {
		t.Errorf("of none: %v", err)
	}
	client.PrependReactor("list", "kubefedclusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	if _, err := readSources(t.Context(), client, "host"); err == nil || err.Error() != `list kubefedclusters.core.kubefed.io of context "host": kubefedclusters.core.kubefed.io is forbidden: no; nothing was imported` {
		t.Errorf("without the right: %v", err)
	}
}

// TestFromContextErrors has what is wrong with the kubeconfig that is named.
func TestFromContextErrors(t *testing.T) {
	const content = `{apiVersion: v1, kind: Config, clusters: [{name: odd, cluster: {server: "https://e.example:port"}}], contexts: [{name: odd, context: {cluster: odd}}]}`
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		code       int
	}{
		{"nowhere", `context "nowhere": context "nowhere" does not exist; "kubectl config get-contexts" lists those that there are`, 2},
		{"odd", `context "odd": host must be a URL or a host:port pair: "https://e.example:port"`, 1},
	} {
		env := commandtest.New(t)
		if text, code := env.Run(t, NewImport(env.Env), "--from-context", test.name, "--from-kubeconfig", path); code != test.code || text != test.want {
			t.Errorf("%d, %s", code, text)
		}
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestExportErrors expects that half of a file is not taken for one.
func TestExportErrors(t *testing.T) {
	env := commandtest.New(t, some("east", "one"))
	env.Out = full{}
	if text, code := env.Run(t, NewExport(env.Env)); code != 1 || text != "write the clusters: no space left on device" {
		t.Errorf("a full disk: %d, %s", code, text)
	}
	env = commandtest.New(t)
	env.Clusters.PrependReactor("list", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	if text, code := env.Run(t, NewExport(env.Env)); code != 1 || !strings.HasPrefix(text, "list the clusters: clusters.clusterregistry.k8s.io is forbidden: no; docs/reference/plugin.md lists the rights") {
		t.Errorf("no right: %d, %s", code, text)
	}
}

// TestImportOfTheSameKubeconfig expects that --kubeconfig also says where the other
// context is, unless that has a file of its own.
func TestImportOfTheSameKubeconfig(t *testing.T) {
	for _, test := range []struct{ args, want string }{{"", "hub.kubeconfig"}, {"--from-kubeconfig=other", "other"}} {
		env, asked := commandtest.New(t), ""
		*env.Flags.KubeConfig = "hub.kubeconfig"
		i := &importer{env: env.Env, read: func(_ context.Context, path, _ string) ([]*unstructured.Unstructured, error) {
			asked = path
			return []*unstructured.Unstructured{parse(t, foreign[0].object)}, nil
		}}
		if text, code := env.Run(t, i.command(), append(strings.Fields(test.args), "--from-context=y")...); code != 0 || asked != test.want {
			t.Errorf("%q reads %q: %d, %s", test.args, asked, code, text)
		}
		if got := env.Stderr.String(); got != "Entering 1 cluster in the registry of context hub\n" {
			t.Errorf("it says %q", got)
		}
	}
}

func TestImportCommandLine(t *testing.T) {
	for _, test := range []struct {
		args, stdin, text string
		code              int
	}{
		{"", "", "name either a file with -f or a context with --from-context", 2},
		{"-f x --from-context y", "", "name either a file with -f or a context with --from-context", 2},
		{"-f -", "{", "document 1 of - is neither YAML nor JSON", 1},
		{"-f -", "kind: List\nitems: 1\n", "document 1 of - is a list whose items are none", 1},
		{"-f -", "kind: List\nitems: [1]\n", "document 1 of - is a list with an item that is not an object; nothing was imported", 1},
		{"-f -", "- 1\n", "document 1 of - is neither YAML nor JSON", 1},
		{"-f /nowhere/clusters.yaml", "", "read the clusters: open /nowhere/clusters.yaml: ", 1},
		{"-f - --dry-run=maybe", "", "--dry-run=maybe: use none or client or server", 2},
		{"-f - -o xml", "", "--output=xml: use json or yaml", 2},
		{"east", "", `unknown command "east" for "kubectl-registry import"; see "kubectl-registry import --help"`, 2},
		{"--from-context y", "", "it is silent", 1},
		{"-f -", "", "the standard input has no clusters: nothing was imported; check that it is the one that you mean", 3},
		{"-f -", "apiVersion: v1\nkind: List\nitems: []\n", "the standard input has no clusters", 3},
	} {
		env := commandtest.New(t)
		env.Stdin.WriteString(test.stdin)
		i := &importer{env: env.Env, read: func(context.Context, string, string) ([]*unstructured.Unstructured, error) {
			return nil, errors.New("it is silent")
		}}
		if text, code := env.Run(t, i.command(), strings.Fields(test.args)...); code != test.code || !strings.HasPrefix(text, test.text) {
			t.Errorf("%q: %d, %s", test.args, code, text)
		}
	}
}

// TestExportOfNone has a selector that matches no cluster: that is no error of export, and
// import refuses to take it for a success.
func TestExportOfNone(t *testing.T) {
	env := commandtest.New(t, some("east", "one"))
	none := export(t, env, "--selector", "a=none")
	if strings.Contains(none, "east") {
		t.Errorf("it exports\n%s", none)
	}
	env.Stdin.WriteString(none)
	if text, code := env.Run(t, NewImport(env.Env), "-f", "-"); code != 3 || !strings.HasPrefix(text, "the standard input has no clusters: nothing was imported") {
		t.Errorf("import: %d, %s", code, text)
	}
	if text, code := env.Run(t, NewImport(env.Env), "-f", "-", "--selector", "a=b"); code == 0 || text != "unknown flag: --selector" {
		t.Errorf("import --selector: %d, %s", code, text)
	}
}
