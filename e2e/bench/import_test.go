package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// importAim is how long an import into an empty registry is to take.
const importAim = time.Minute

// TestImport prints how long "kubectl registry import" takes for clusters with an id, labels and
// a CA: into an empty registry, again when all are there, and when all have changed. IMPORT_CLUSTERS
// says how many there are.
func TestImport(t *testing.T) {
	clusters, err := strconv.Atoi(cmp.Or(os.Getenv("IMPORT_CLUSTERS"), "10000"))
	if err != nil || clusters < 1 {
		t.Fatal("IMPORT_CLUSTERS: give a number")
	}
	etcd, clients := framework.StartEtcd(t, 1), framework.NewAuthority(t, "clients")
	registry := framework.StartRegistry(t, append(etcd.Flags(), "--mode=independent", "--client-ca-file="+clients.File)...)
	registry.WaitReady(t)
	kubeconfig := registry.Kubeconfig(t, clients.Issue("root", []string{"clusterregistry:admins"}))
	first, changed := importFile(t, clusters, clients.PEM, "eu"), importFile(t, clusters, clients.PEM, "us")
	serving := []*process{newProcess(t, registryServer, registry.PID(), nil), newProcess(t, store, etcd.PID(0), nil)}
	fmt.Printf("%d clusters\n| import | s | aim, s | CPU of the plugin, s | of the server | of etcd |\n|---|---|---|---|---|---|\n", clusters)
	for _, one := range []struct {
		name, file, result string
		aim                time.Duration
	}{{"into an empty registry", first, "created", importAim}, {"again, nothing changed", first, "same", 0}, {"all changed", changed, "updated", 0}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(framework.Root(t), "bin", "kubectl-registry"), "--kubeconfig="+kubeconfig, "import", "--overwrite", "-f", one.file, "-o", "json")
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=")
		var out, failure bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &failure
		begun, before := time.Now(), []time.Duration{serving[0].cpu(t), serving[1].cpu(t)}
		err := cmd.Run()
		took := time.Since(begun)
		if got := strings.Count(out.String(), `"result": "`+one.result+`"`); err != nil || got != clusters {
			t.Fatalf("%s: %d of %d are %s: %v\n%.2000s", one.name, got, clusters, one.result, err, failure.String())
		}
		aim := ""
		if one.aim > 0 {
			aim = fmt.Sprintf("%.0f", one.aim.Seconds())
		}
		fmt.Printf("| %s | %.1f | %s | %.1f | %.1f | %.1f |\n", one.name, took.Seconds(), aim, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
			(serving[0].cpu(t) - before[0]).Seconds(), (serving[1].cpu(t) - before[1]).Seconds())
	}
}

// importFile writes a file with clusters.
func importFile(t *testing.T, clusters int, ca []byte, region string) string {
	t.Helper()
	var content bytes.Buffer
	for i := range clusters {
		name := fmt.Sprintf("cluster-%05d", i)
		one := v1beta1.Cluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}},
			Spec:       v1beta1.ClusterSpec{ID: "id-" + name, Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com", CABundle: ca}}},
		}
		line, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&content, "---\n%s\n", line)
	}
	file := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
