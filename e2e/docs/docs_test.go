// Package docs types what the guides say. A guide's blocks marked "sh" are run in
// their order, in one shell, as a reader would; those marked "console" are not, as
// they fetch from the internet or publish what this computer can't.
package docs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMain waits in the end for the namespaces of all tests to be gone.
func TestMain(m *testing.M) { framework.Main(m) }

// guide is a document that is typed.
type guide struct {
	file string
	// blocks is how many are run at least: one that is no longer run has to be taken from
	// here, too.
	blocks int
	// stays is true for a guide that goes on in another one, and so does not clean up.
	stays bool
	// needs installs what the guide finds in the cluster, besides the operator.
	needs func(*testing.T, *framework.Kubectl)
	// shows are texts among what the commands print.
	shows []string
}

// guides are those that "make test" types.
var guides = []guide{
	{file: "README.md", blocks: 1, stays: true},
	{file: "docs/tutorials/quickstart.md", blocks: 6},
	{file: "docs/tutorials/aggregated.md", blocks: 5},
	{file: "docs/tutorials/independent.md", blocks: 6},
	{file: "docs/tutorials/backups.md", blocks: 7},
	{file: "docs/how-to/integrations/cluster-api.md", blocks: 6, needs: framework.NeighborAPIs, shows: []string{"crc/east", "clusterprofile.multicluster.x-k8s.io/east condition met"}},
	{file: "docs/tutorials/teams.md", blocks: 7, shows: []string{
		"--output=name --as=ann --as-group=payments\ncluster.clusterregistry.k8s.io/east\n+ ",
		"--output=name --as=sam --as-group=search\ncluster.clusterregistry.k8s.io/west\n+ ",
		"cluster.clusterregistry.k8s.io/east labeled",
		`clusters.clusterregistry.k8s.io "west" not found`,
		"ann sees the clusters of 1 of 2 sets (1), changes those of 1",
	}},
}

// readers are those of more neighbors that read a registry, which prepare it as the others do.
var readers = []guide{
	{file: "docs/how-to/integrations/clusterprofiles.md", blocks: 6, needs: framework.NeighborAPIs, shows: []string{
		"clusterprofile.multicluster.x-k8s.io/east condition met", "system:serviceaccount:kube-system:default",
	}},
	{file: "docs/how-to/integrations/kueue.md", blocks: 5, needs: framework.KueueAPIs, shows: []string{
		"clusterprofile.multicluster.x-k8s.io/east condition met", "multikueuecluster.kueue.x-k8s.io/east created", "multikueueconfig.kueue.x-k8s.io/workers created",
	}},
	{file: "docs/how-to/integrations/argo-cd.md", blocks: 3, needs: framework.NeighborAPIs, shows: []string{"environment=prod", "clusterregistry.operator.clusterregistry.io/fleet condition met"}},
	{file: "docs/how-to/integrations/multicluster-runtime.md", blocks: 3, shows: []string{"cluster.clusterregistry.k8s.io/east condition met", `{"member":"east"}`}},
	{file: "docs/how-to/selections.md", blocks: 5, shows: []string{"clusterselection.operator.clusterregistry.io/gold condition met", "east west"}},
	{file: "docs/how-to/migrate.md", blocks: 5, shows: []string{
		"10.0.0.0/8 https://10.0.0.7:6443\n", "0.0.0.0/0 https://east.example.com:6443\n", "https://west.example.com:6443\n", "\nyes\n",
	}},
}

// mine selects what the operator has made.
const mine = "app.kubernetes.io/managed-by=clusterregistry-operator"

// kinds are those of which a registry leaves something behind when it is deleted
// with its data.
const kinds = "creg,deployments,statefulsets,jobs,pvc,configmaps,secrets,certificates,issuers"

// TestGuides runs each guide on a cluster without registries, and expects that its
// own last commands leave nothing behind.
func TestGuides(t *testing.T) { typeGuides(t, guides) }

// TestMatrixGuides does so with the guides that repeat much of the others.
func TestMatrixGuides(t *testing.T) { typeGuides(t, readers) }

func typeGuides(t *testing.T, guides []guide) {
	t.Helper()
	framework.New(t).WithOperator()
	kubectl := framework.NewKubectl(t, "v1.37.1", framework.ClusterKubeconfig(t))
	if there := kubectl.Run("get", "creg", "--all-namespaces", "-o", "name"); there != "" {
		t.Fatalf("the guides need a cluster without registries, and there are:\n%s", there)
	}
	home := newHome(t, kubectl)
	for _, guide := range guides {
		t.Run(filepath.Base(guide.file), func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(framework.Root(t), guide.file))
			if err != nil {
				t.Fatal(err)
			}
			run, left := blocks(string(content))
			if len(run) < guide.blocks {
				t.Errorf("only %d blocks of %s are run, want %d", len(run), guide.file, guide.blocks)
			}
			checkReleases(t, string(content))
			if guide.needs != nil {
				guide.needs(t, kubectl)
			}
			for _, block := range left {
				t.Logf("not run: %s:%d: %s", guide.file, block.line, block.text)
			}
			// What a guide that fails in the middle has made is in the way of the next.
			t.Cleanup(func() { tidy(t, kubectl) })
			printed := typeAll(t, home, guide.file, run)
			for _, text := range guide.shows {
				if !strings.Contains(printed, text) {
					t.Errorf("what %s says does not print %q", guide.file, text)
				}
			}
			if guide.stays {
				return
			}
			// What owners take with them goes a moment later.
			framework.Eventually(t, guide.file+" to leave nothing behind", func(context.Context) error {
				there, err := kubectl.Try("get", kinds, "--namespace=default", "--selector="+mine, "-o", "name")
				if err == nil && there != "" {
					err = fmt.Errorf("there is:\n%s", there)
				}
				return err
			})
		})
	}
}

// release is one that a guide's manifest or command asks for.
var release = regexp.MustCompile(`\bversion"?: *"?(v[0-9.]+)`)

// checkReleases fails the test when a guide runs a release that was not built for it.
func checkReleases(t *testing.T, guide string) {
	t.Helper()
	for _, match := range release.FindAllStringSubmatch(guide, -1) {
		if err := framework.CheckRelease(framework.Needs(t), match[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// tidy deletes registries and their data, and what else the guides make.
func tidy(t *testing.T, kubectl *framework.Kubectl) {
	for _, args := range []string{
		"delete creg --namespace=default --all --timeout=5m",
		"delete pvc,configmap,certificate,issuer,secret --namespace=default --selector=" + mine,
		"delete certificate,secret ann --namespace=default --ignore-not-found",
		"delete cregb --namespace=default --all",
		"delete pvc backups --namespace=default --ignore-not-found",
		"delete namespace registries clusters argocd kueue-system team-a --ignore-not-found --timeout=5m",
		"delete clusterrolebinding fleet-cluster-viewers federation-reads-clusters --ignore-not-found",
		"delete clusterrolebindings,clusterroles --selector=app.kubernetes.io/managed-by=kubectl-registry",
	} {
		if _, err := kubectl.After().Try(strings.Fields(args)...); err != nil {
			t.Error(err)
		}
	}
}

// home is what a reader of a guide has on their computer.
type home struct {
	// kubeconfig has a context of the cluster that the tests run on, the current one,
	// and one of another cluster, east.
	kubeconfig string
	// programs is a directory with the plugin.
	programs string
}

// newHome brings up the other cluster, and builds the plugin.
func newHome(t *testing.T, kubectl *framework.Kubectl) home {
	t.Helper()
	root, dir := framework.Root(t), t.TempDir()
	h := home{kubeconfig: filepath.Join(dir, "kubeconfig"), programs: dir}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./cli/kubectl-registry")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	name := framework.ClusterName() + "-docs"
	t.Cleanup(func() {
		if out, err := framework.TryCluster(context.Background(), root, "--name", name, "down"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	})
	framework.Cluster(t, "--name", name, "up", "--nodes", "0", "--beside", framework.ClusterName())
	files := []string{framework.ClusterKubeconfig(t), filepath.Join(root, ".cluster", name, "kubeconfig")}
	both := kubectl.Environment("KUBECONFIG="+strings.Join(files, string(os.PathListSeparator))).Run("config", "view", "--flatten", "--kubeconfig=")
	if err := os.WriteFile(h.kubeconfig, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl.Run("config", "rename-context", name, "east", "--kubeconfig="+h.kubeconfig)
	return h
}

// patience is how long what may be asked a moment too early may take to come true: a reader who
// waits longer takes it for a fault.
const patience = 30 * time.Second

// typeAll types blocks into one shell, in a directory from which the paths in them
// lead where they do from the top of the repository, and that takes what they write. What may be
// asked a moment too early is asked again, which is logged: testdata/kubectl says what. It returns the commands,
// after "+ ", and what they print.
func typeAll(t *testing.T, h home, file string, blocks []block) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(framework.Root(t), "manifests"), filepath.Join(dir, "manifests")); err != nil {
		t.Fatal(err)
	}
	script := &strings.Builder{}
	for _, b := range blocks {
		fmt.Fprintf(script, "echo '=== %s:%d'\n%s", file, b.line, b.text)
	}
	fmt.Fprintln(script, "echo '=== done'")
	// Each command is shown before it runs, and the first that fails ends it.
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script.String())
	cmd.Dir = dir
	path := strings.Join([]string{filepath.Dir(typed(t)), h.programs, os.Getenv("PATH")}, string(os.PathListSeparator))
	cmd.Env = append(os.Environ(), "PATH="+path, "HOME="+dir, "KUBECONFIG="+h.kubeconfig,
		"KUBECTL="+framework.Program(t, "kubernetes", "v1.37.1", "kubectl"), fmt.Sprintf("PATIENCE=%.0f", patience.Seconds()), "RETRIES="+filepath.Join(dir, "retries"))
	out, err := cmd.CombinedOutput()
	if retries, readErr := os.ReadFile(filepath.Join(dir, "retries")); readErr == nil {
		t.Logf("asked again:\n%s", retries)
	} else if !errors.Is(readErr, fs.ErrNotExist) {
		t.Error(readErr)
	}
	if err != nil {
		t.Fatalf("what %s says does not work: %v\n%s", file, err, out)
	}
	if n := strings.Count(string(out), "\n=== "+file); !strings.HasSuffix(string(out), "=== done\n") || n != len(blocks) {
		t.Errorf("%d of %d blocks were run:\n%s", n, len(blocks), out)
	}
	t.Log(string(out))
	return string(out)
}
