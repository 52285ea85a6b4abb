package main

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// sessionClusters are the registry of the sessions.
var sessionClusters = []string{`
metadata: {name: east, labels: {region: eu}}
spec:
  id: 5f0e8c1a-0c6f-4b2e-9a53-2f1f3f6f7a10
  endpoints: [{name: main, url: "https://east.example.com:6443"}]
  access: [{name: users, audience: User, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: gke-gcloud-auth-plugin}}]
status:
  version: {kubernetes: v1.37.1}
  conditions: [{type: Available, status: "True", reason: Ready, lastTransitionTime: "2026-11-20T10:00:00Z"}]
`, `
metadata: {name: west, labels: {region: us}}
spec:
  id: 0d0b0a62-6f5e-4d6f-8f0e-6d1f0c2b3a41
  endpoints: [{name: main, url: "https://west.example.com:6443"}]
status:
  version: {kubernetes: v1.36.3}
  conditions: [{type: Available, status: "False", reason: Refused, message: "connection refused", lastTransitionTime: "2026-11-23T11:58:00Z"}]
`}

// sessionHost is the host cluster of the sessions.
const sessionHost = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: registries, generation: 1}
spec:
  version: v0.1.0
  mode: Aggregated
  etcd: {replicas: 3}
  backup: {schedule: 0 * * * *, store: {s3: {bucket: backups, prefix: prod, secretRef: {name: store}}}}
status:
  version: v0.1.0
  observedGeneration: 1
  etcdVersion: v3.7.3
  hostVersion: v1.37.1
  etcd:
    ready: 3/3
    members:
    - {name: fleet-etcd-0, id: 8e9e05c52164694d, ready: true, version: v3.7.3, leader: true, databaseSize: 820Mi, databaseSizeInUse: 310Mi, quota: 4Gi}
    - {name: fleet-etcd-1, id: 91bc3c398fb3c146, ready: true, version: v3.7.3, databaseSize: 820Mi, databaseSizeInUse: 310Mi, quota: 4Gi}
    - {name: fleet-etcd-2, id: fd422379fda50e48, ready: true, version: v3.7.3, databaseSize: 312Mi, databaseSizeInUse: 310Mi, quota: 4Gi, defragmentedTime: "2026-11-23T11:40:00Z"}
  certificates: [{name: fleet-serving, notAfter: "2027-01-20T12:00:00Z", renewalTime: "2026-12-21T12:00:00Z"}]
  backup:
    lineage: 0b9c4b52c1a84e7f
    lastSuccess: {name: fleet-20261123-1100, time: "2026-11-23T11:00:40Z", verifiedTime: "2026-11-23T11:00:38Z", revision: 48213, bytes: 335544320, location: "s3://backups/prod/0b9c4b52c1a84e7f/fleet-20261123-1100/manifest.json"}
    window: {oldest: "2026-11-23T05:00:20Z", newest: "2026-11-23T11:00:20Z"}
  conditions:
  - {type: Available, status: "True", reason: Available}
  - {type: BackupReady, status: "True", reason: BackedUp, message: "the last backup that succeeded, at 2026-11-23T11:00:40Z, is fleet-20261123-1100, verified at 2026-11-23T11:00:38Z; the next one is due at 2026-11-23T12:00:00Z"}
  - {type: Ready, status: "True", reason: Ready}
  - {type: EtcdReady, status: "True", reason: Ready, message: 3/3 etcd members ready (v3.7.3)}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-fleet-etcd-1, namespace: registries, deletionTimestamp: "2026-11-23T11:00:00Z", labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/managed-by: clusterregistry-operator}}
spec: {volumeName: pvc-3c5c2b8e}
status: {phase: Bound}
---
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistryBackup
metadata: {name: fleet-20261123-1100, namespace: registries, uid: 3f1c, creationTimestamp: "2026-11-23T11:00:00Z", annotations: {operator.clusterregistry.io/reason: Schedule}}
spec: {registryRef: {name: fleet}, deletionPolicy: Retain}
status:
  phase: Completed
  name: fleet-20261123-1100
  location: s3://backups/prod/0b9c4b52c1a84e7f/fleet-20261123-1100/manifest.json
  lineage: 0b9c4b52c1a84e7f
  revision: 48213
  bytes: 335544320
  sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  etcdVersion: 3.7.3
  release: v0.2.0
  keys: [{resource: clusters, count: 1204}]
  takenTime: "2026-11-23T11:00:20Z"
  verifiedTime: "2026-11-23T11:00:38Z"
  completionTime: "2026-11-23T11:00:40Z"
---
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistryBackup
metadata: {name: before-cleanup, namespace: registries, uid: 4a7e, creationTimestamp: "2026-11-23T11:59:30Z"}
spec: {registryRef: {name: fleet}, deletionPolicy: Delete}
status: {phase: Saving}
---
` + commandtest.Operator

// session is what a person types and sees.
type session struct {
	section string
	// line is the command line; typed is what the person answers.
	line, typed string
	code        int
	// without are clusters that the registry doesn't have yet.
	without string
	// host are the objects of the host cluster, sessionHost when it is empty.
	host string
	// team is whether the clusters are in sets, and roles let a team see one of them.
	team bool
}

// sessions are those of the page, one of each command at least.
var sessions = []session{
	{section: "join", line: "kubectl registry join east --cluster-context admin@east --server https://east.example.com:6443 --label region=eu", without: "east"},
	{section: "unjoin", line: "kubectl registry unjoin west", typed: "y\n"},
	{section: "status", line: "kubectl registry status", code: 4},
	{section: "clusters", line: "kubectl registry clusters --by region"},
	{section: "kubeconfig", line: "kubectl registry kubeconfig --all --merge", typed: "y\n"},
	{section: "export", line: "kubectl registry export -l region=eu"},
	{section: "import", line: "kubectl registry import -f clusters.yaml", code: 4},
	{section: "grant", line: "kubectl registry grant payments --viewer --group team-payments", host: teamHost, team: true},
	{section: "can-see", line: "kubectl registry can-see --subject ann --subject-group team-payments", host: teamHost, team: true},
	{section: "upgrade plan", line: "kubectl registry upgrade plan fleet"},
	{section: "upgrade to", line: "kubectl registry upgrade to v0.2.0 fleet"},
	{section: "etcd members", line: "kubectl registry etcd members fleet"},
	{section: "etcd defrag", line: "kubectl registry etcd defrag fleet", typed: "y\n"},
	{section: "etcd replace", line: "kubectl registry etcd replace fleet-etcd-1", typed: "y\n"},
	{section: "etcd rotate-ca", line: "kubectl registry etcd rotate-ca serving fleet", typed: "y\n"},
	{section: "backup create", line: "kubectl registry backup create fleet"},
	{section: "backup list", line: "kubectl registry backup list fleet"},
	{section: "backup show", line: "kubectl registry backup show fleet-20261123-1100"},
	{section: "backup verify", line: "kubectl registry backup verify fleet-20261123-1100"},
	{section: "restore plan", line: "kubectl registry restore plan fleet-20261123-1100 --into rehearsal/fleet"},
	{section: "recover plan", line: "kubectl registry recover plan fleet", code: 4, host: lostHost},
	{section: "diagnose", line: "kubectl registry diagnose fleet", code: 4},
	{section: "report", line: "kubectl registry report fleet"},
}

// TestSessions runs each command as a person does and compares what the pages show of
// it. UPDATE_DOCS=1 writes them. The registry, its host cluster and the member are
// made up; what is printed is not.
func TestSessions(t *testing.T) {
	// A session runs in a directory of its own.
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	pages, shown := map[string]string{}, map[string]bool{}
	for _, page := range []string{pluginPage, longPage} {
		pages[filepath.Join(here, page)] = read(t, page)
	}
	for _, s := range sessions {
		shown[s.section] = true
		page := filepath.Join(here, pluginPage)
		if slices.Contains(long, s.section) {
			page = filepath.Join(here, longPage)
		}
		seen, _ := s.run(t)
		pages[page] = recorded(t, pages[page], s, seen)
	}
	for _, name := range []string{"join", "unjoin", "status", "clusters", "kubeconfig", "export", "import", "grant", "can-see", "restore plan", "recover plan", "diagnose", "report"} {
		if !shown[name] {
			t.Errorf("no session of %s", name)
		}
	}
	for page, text := range pages {
		if text == read(t, page) {
			continue
		}
		if os.Getenv("UPDATE_DOCS") == "" {
			t.Fatalf("the sessions in %s differ from what the commands print: run UPDATE_DOCS=1 go test ./cli/kubectl-registry, and compare with git diff", page)
		}
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
	}
}

// run returns what a person sees, both outputs in the order of a terminal, and the
// requests that were sent to the registry and its host cluster.
func (s session) run(t *testing.T) (string, []clienttesting.Action) {
	t.Helper()
	env := commandtest.New(t, clustersOf(t, s.without)...)
	seen := &bytes.Buffer{}
	env.Out, env.ErrOut = seen, seen
	if s.typed != "" {
		env.Typing(s.typed)
	}
	env.Objects = commandtest.HostCluster(commandtest.Objects(t, cmp.Or(s.host, sessionHost))...)
	client := kubernetesfake.NewClientset()
	if s.team {
		client = teamOf(t, env)
	}
	env.Kubernetes = func() (kubernetes.Interface, error) { return client, nil }
	t.Chdir(t.TempDir())
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", filepath.Join(home, "config"))
	writeSessionFiles(t, filepath.Join(home, "config"))

	cmd := root(env.Env)
	cmd.SetArgs(strings.Fields(s.line)[2:])
	err := cmd.ExecuteContext(t.Context())
	if text := message(err); text != "" {
		fmt.Fprintln(seen, text)
	}
	if got := command.ExitCode(err); got != s.code {
		t.Fatalf("%s exits with %d, want %d:\n%s", s.line, got, s.code, seen)
	}
	// A person's answer stands behind its question.
	out := strings.ReplaceAll(seen.String(), "[y/N] ", "[y/N] "+strings.TrimSuffix(s.typed, "\n")+"\n")
	out = strings.ReplaceAll(out, home, "/home/ann/.kube")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ") // as columns leave them
	}
	return strings.Join(lines, "\n") + "\n", slices.Concat(env.Clusters.Actions(), env.Objects.Actions(), client.Actions())
}

// clustersOf returns the clusters in the registry but one.
func clustersOf(t *testing.T, without string) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	for _, text := range sessionClusters {
		c := &v1beta1.Cluster{}
		if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		if c.Name != without {
			out = append(out, c)
		}
	}
	return out
}

// writeSessionFiles writes the kubeconfig of the person, with a member that answers, and
// a file to import.
func writeSessionFiles(t *testing.T, path string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "hub"
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: "https://hub.example.com:6443"}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: member.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: member.Certificate().Raw})}
	config.Contexts["admin@east"] = &clientcmdapi.Context{Cluster: "member"}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	const file = `apiVersion: v1
kind: List
items:
- {apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: north}, spec: {endpoints: [{name: main, url: "https://north.example.com:6443"}]}}
- {apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: west}, spec: {displayName: West}}
- {apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: south}, spec: {endpoints: [{name: main, url: "http://south.example.com"}]}}
`
	if err := os.WriteFile("clusters.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
}
