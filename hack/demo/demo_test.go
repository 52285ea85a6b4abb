package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/hack/cluster/components"
)

func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

// TestProgress tells a story in steps: each adds the lines that it wants.
func TestProgress(t *testing.T) {
	seen := progress{}
	for _, step := range []struct {
		reason     string
		since      time.Duration
		conditions []metav1.Condition
		want       []string
	}{
		{"nothing is reported yet", 0, nil, nil},
		{"all that is new, in order", 1400 * time.Millisecond, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "1 of 3"), condition("Ready", "False", "Waiting", "etcd")},
			[]string{"    1s  EtcdReady           False    MembersNotReady         1 of 3", "    1s  Ready               False    Waiting                 etcd"}},
		{"nothing has changed", 2 * time.Second, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "1 of 3"), condition("Ready", "False", "Waiting", "etcd")}, nil},
		{"a message of several lines, with one", 3 * time.Second, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "2 of 3:\n  etcd-2"), condition("Ready", "False", "Waiting", "etcd")},
			[]string{"    3s  EtcdReady           False    MembersNotReady         2 of 3: etcd-2"}},
		{"a status, minutes later", 75 * time.Second, []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "2 of 3:\n  etcd-2"), condition("Ready", "True", "Waiting", "etcd")},
			[]string{" 1m15s  Ready               True     Waiting                 etcd"}},
	} {
		if got := seen.changes(step.since, step.conditions); !slices.Equal(got, step.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", step.reason, strings.Join(got, "\n"), strings.Join(step.want, "\n"))
		}
	}
}

func TestReady(t *testing.T) {
	for _, test := range []struct {
		reason     string
		observed   int64
		conditions []metav1.Condition
		says       string
	}{
		{"untouched", 0, nil, "has not reported on it yet"},
		{"ready before a change", 1, []metav1.Condition{condition("Ready", "True", "Ready", "")}, "has not seen its newest spec"},
		{"not ready", 2, []metav1.Condition{condition("Ready", "False", "Waiting", "for etcd")}, "condition Ready is False: Waiting: for etcd"},
		{"ready", 2, []metav1.Condition{condition("Ready", "True", "Ready", "")}, ""},
	} {
		r := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: operatorv1alpha1.ClusterRegistryStatus{ObservedGeneration: test.observed, Conditions: test.conditions}}
		err := ready(r)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.says)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, test := range []struct {
		reason     string
		conditions []metav1.Condition
		says       string
	}{
		{"an operator that does nothing", nil, "none: the operator has not acted on it"},
		{"conditions are repeated", []metav1.Condition{condition("EtcdReady", "False", "MembersNotReady", "1 of 3")}, "MembersNotReady         1 of 3"},
	} {
		got := failure(patience, test.conditions)
		for _, text := range []string{test.says, "kubectl describe creg fleet", "logs deployment/clusterregistry-operator"} {
			if !strings.Contains(got, text) {
				t.Errorf("%s: it does not say %q:\n%s", test.reason, text, got)
			}
		}
	}
}

// TestControllersAreValid holds what the demo turns on to the operator's own types.
func TestControllersAreValid(t *testing.T) {
	var patch operatorv1alpha1.ClusterRegistry
	if err := yaml.UnmarshalStrict([]byte(controllers), &patch); err != nil {
		t.Fatal(err)
	}
	if c := patch.Spec.Controllers; c == nil || c.Health == nil || c.RegisterHost == nil || c.RegisterHost.Name != "host" || len(c.Exports) != 1 || c.Exports[0].Format != operatorv1alpha1.ExportClusterProfile || string(c.Exports[0].Namespace) != inventory {
		t.Errorf("it turns on %+v", c)
	}
}

// TestInventory reads what the demo installs before the registry: the CRD from its module, and
// a namespace with the label that names the registry.
func TestInventory(t *testing.T) {
	t.Chdir("../..")
	file, err := profileCRD(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	read(t, file, &crd)
	if crd.Name != "clusterprofiles.multicluster.x-k8s.io" || crd.Spec.Versions[0].Name != "v1alpha1" {
		t.Errorf("%s has %s, %+v", file, crd.Name, crd.Spec.Versions)
	}
	var namespace corev1.Namespace
	var registry operatorv1alpha1.ClusterRegistry
	read(t, inventoryFile, &namespace)
	read(t, registryFile, &registry)
	if namespace.Name != inventory || namespace.Labels["registry.clusterregistry.io/"+registry.Name] != registry.Namespace {
		t.Errorf("%s has the labels %v, and the registry is %s in %s", namespace.Name, namespace.Labels, registry.Name, registry.Namespace)
	}
	s, out := play(t, "#!/bin/sh\n", "kubectl")
	if err := open(t.Context(), s); err != nil || !strings.Contains(out.String(), "$ kubectl apply -f "+file+"\n") || !strings.Contains(out.String(), "$ kubectl apply -f hack/demo/inventory.yaml\n") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestNewFleet says which clusters join: none where the host cluster can have no others
// beside it.
func TestNewFleet(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct{ reason, host, provider, want, fails string }{
		{reason: "the cluster of make demo", host: "registry", provider: "local\n", want: "east west"},
		{reason: "another one has others", host: "mine", provider: "local\n", want: "mine-east mine-west"},
		{reason: "another provider", host: "docker", provider: "kind\n"},
		{reason: "no cluster", host: "absent", fails: "make cluster NAME=absent makes one"},
	} {
		if test.provider != "" {
			dir := filepath.Join(clusters, test.host)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "provider"), []byte(test.provider), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := newFleet(test.host)
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.fails)
		}
		var locals []string
		for _, m := range f.members {
			locals = append(locals, m.local)
		}
		if got := strings.Join(locals, " "); got != test.want {
			t.Errorf("%s: members are %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestOtherProviders expects kubectl from $PATH where the cluster is not of the local provider, and
// cert-manager to be installed where there is none.
func TestOtherProviders(t *testing.T) {
	t.Chdir(t.TempDir())
	s, out := play(t, `#!/bin/sh
case "$*" in *fail*) exit 1 ;; esac
`, "kubectl", "kubectl-registry")
	if err := os.Symlink(s.path[0], programs); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := newShell(t.Context(), fleet{provider: "kind"}, out); err == nil || !strings.Contains(err.Error(), "https://kubernetes.io/docs/tasks/tools") {
		t.Errorf("without kubectl: %v", err)
	}
	t.Setenv("PATH", s.path[0])
	s, err := newShell(t.Context(), fleet{provider: "existing"}, out)
	if err != nil {
		t.Fatal(err)
	}
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	crd.Name = "certificates.cert-manager.io"
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(crd.GroupVersionKind(), crd)
	for _, test := range []struct {
		reason  string
		objects []client.Object
		want    string
	}{
		{"it is there", []client.Object{crd}, ""},
		{"it is missing", nil, "$ kubectl apply -f https://github.com/cert-manager/cert-manager/releases/download/" + components.CertManager.Version + "/cert-manager.yaml\n"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			out.Reset()
			admits := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil }}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).WithInterceptorFuncs(admits).Build()
			if err := certManager(t.Context(), c, s); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.HasSuffix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("it prints %q, want %q", got, test.want)
			}
		})
	}
}

// play returns a shell in which a script plays each of the named programs.
func play(t *testing.T, script string, names ...string) (shell, *strings.Builder) {
	t.Helper()
	dir, out := t.TempDir(), &strings.Builder{}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return shell{path: []string{dir}, out: out}, out
}

// TestStory tells the whole story to programs that only say what they are asked, and
// expects that it ends with the fleet's status and a call into a member.
func TestStory(t *testing.T) {
	const script = `#!/bin/sh
case "$*" in
*" --dry-run=client") echo "digest of what is to be confirmed: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" ;;
"get crc east --watch"*) echo "ADDED  east  East  v1  True  1m"; sleep 0.2; echo "MODIFIED  east  East  v1  False  1m"; echo "MODIFIED  east  East  v1  True  1m" ;;
"registry status") if [ ! -e "$0.asked" ]; then touch "$0.asked"; exit 4; fi ;;
esac
`
	plugin, err := filepath.Abs("testdata/plugin.txt")
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	t.Chdir(top)
	s, out := play(t, script, "kubectl")
	if err := os.MkdirAll("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bin/cluster", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := fleet{host: "registry", members: []member{{"east", "east", "East", "region=eu"}, {"west", "west", "West", "region=us"}}}
	if err := f.show(t.Context(), s); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var commands []string
	for line := range strings.Lines(out.String()) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	want := []string{"kubectl registry status", "kubectl --kubeconfig=.cluster/registry/fleet.kubeconfig --context=east get namespaces"}
	if got := commands[len(commands)-2:]; !slices.Equal(got, want) {
		t.Errorf("it ends with %q, want %q", got, want)
	}
	for _, want := range []string{
		"bin/cluster up --name=west --nodes=0 --beside=registry",
		"kubectl registry join east --cluster-kubeconfig=.cluster/east/kubeconfig --cluster-context=east --display-name=East --label=region=eu",
		"bin/cluster stop --name=east",
		"kubectl wait --namespace=inventory --for=create --timeout=2m clusterprofile/host clusterprofile/east clusterprofile/west",
		"kubectl get clusterprofiles -A",
		"kubectl registry kubeconfig --all --merge=.cluster/registry/fleet.kubeconfig --accept=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		if !slices.Contains(commands, want) {
			t.Errorf("%q is missing in:\n%s", want, strings.Join(commands, "\n"))
		}
	}
	// The kubectl above takes anything. The plugin's tests read these lines as the plugin does.
	known, err := os.ReadFile(plugin)
	if err != nil {
		t.Fatal(err)
	}
	var typed strings.Builder
	for _, line := range commands {
		if strings.HasPrefix(line, "kubectl registry ") {
			typed.WriteString(line + "\n")
		}
	}
	if typed.String() != string(known) {
		t.Errorf("the story has these commands of the plugin, and testdata/plugin.txt has others:\n%s", &typed)
	}
}

// TestHostAlone tells the story where no other cluster can be had.
func TestHostAlone(t *testing.T) {
	s, out := play(t, "#!/bin/sh\necho digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", "kubectl")
	if err := (fleet{host: "docker"}).show(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "the host cluster alone") || strings.Contains(text, "east") {
		t.Errorf("it says\n%s", text)
	}
}

// TestNothingWrong expects that an outage which the registry does not report of ends the demo.
func TestNothingWrong(t *testing.T) {
	s, _ := play(t, `#!/bin/sh
case "$*" in "get crc"*) echo "ADDED  east  True  1m"; sleep 0.2; echo "MODIFIED  east  False  1m" ;; esac
`, "kubectl")
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bin/cluster", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := fleet{host: "registry", members: []member{{"east", "east", "East", ""}}}.outage(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "finds nothing wrong") {
		t.Errorf("got %v", err)
	}
}

// TestTyped lets a shell take each command apart again.
func TestTyped(t *testing.T) {
	for _, args := range [][]string{
		{"get", "crc", "-l", "region=eu"},
		{"patch", "creg", "-p", controllers},
		{"label", "it's", "", "$HOME", "a\nb"},
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { printf '%s\0' "$@"; }; `+typed(append([]string{"kubectl"}, args...))).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, args) {
			t.Errorf("%s is taken as %q, want %q", typed(args), got, args)
		}
	}
	if got := typed([]string{"kubectl", "get", "crc", "-l", "region=eu"}); got != "kubectl get crc -l region=eu" {
		t.Errorf("more quotes than needed: %s", got)
	}
}

// TestWatch lets a script play kubectl, which continues when the label is set.
func TestWatch(t *testing.T) {
	const follow = `#!/bin/sh
case $1 in
get) echo "EVENT  NAME"; echo "ADDED  east"; while [ ! -e "$0.labeled" ]; do sleep 0.01; done; %s ;;
label) : > "$0.labeled"; echo labeled ;;
esac
`
	until := regexp.MustCompile(`\sFalse\s`)
	for _, test := range []struct{ reason, then, says, fails string }{
		{"the event ends it", `echo "MODIFIED  east  True 1m"; echo "MODIFIED  east  False 1m"; exec sleep 600`,
			"$ kubectl get east &   # until False, for 2m0s at most\nEVENT  NAME\nADDED  east\n$ kubectl label east\nlabeled\nMODIFIED  east  True 1m\nMODIFIED  east  False 1m\n", ""},
		{"a watch that ends without", `echo broken >&2`, "labeled\n", "before the change was seen: broken"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s, out := play(t, strings.Replace(follow, "%s", test.then, 1), "kubectl")
			ctx, cancel := context.WithTimeout(t.Context(), eventTime)
			defer cancel()
			err := s.watch(ctx, []string{"kubectl", "get", "east"}, []string{"kubectl", "label", "east"}, until)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got %v, want %q", err, test.fails)
			}
			if !strings.HasSuffix(out.String(), test.says) {
				t.Errorf("it prints\n%s\nwant\n%s", out.String(), test.says)
			}
		})
	}
}
