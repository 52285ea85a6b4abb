package kind

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorder is a kind that writes down what it is asked. It knows the cluster "old", and fails to
// delete the cluster "stuck".
const recorder = `#!/bin/sh
echo "kind $*" >>"$CALLS"
case "$*" in
"get clusters") echo old ;;
create*) cat >>"$CALLS" ;;
delete*stuck) echo "ERROR: failed to delete nodes" >&2; exit 1 ;;
esac
`

// play has kind and an engine played by scripts, and returns what kind has been asked since the
// last call.
func play(t *testing.T, engine string) func() []string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{"kind": recorder, engine: "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	calls := filepath.Join(dir, "calls")
	t.Setenv("CALLS", calls)
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return func() []string {
		content, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(calls); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(content)), "\n")
	}
}

// TestCalls goes through the life of a cluster, and compares what kind is asked.
func TestCalls(t *testing.T) {
	calls := play(t, "podman")
	var out bytes.Buffer
	dir := t.TempDir()
	if err := Possible(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Name: "new", Dir: dir, KubernetesVersion: "v1.37.1", Nodes: 2, Out: &out}
	for _, test := range []struct {
		reason string
		do     func() error
		want   []string
	}{
		{"a cluster that kind does not know is created", func() error { return c.Up(t.Context()) }, []string{
			"kind get clusters",
			"kind create cluster --config - --wait 5m --kubeconfig " + c.Kubeconfig() + " --image kindest/node:v1.37.1 --name new",
			"kind: Cluster", "apiVersion: kind.x-k8s.io/v1alpha4", "nodes:", "- role: control-plane", "- role: worker", "- role: worker",
		}},
		{"a known one is used", func() error {
			return (&Cluster{Name: "old", Dir: dir, Out: &out}).Up(t.Context())
		}, []string{"kind get clusters", "kind export kubeconfig --kubeconfig " + c.Kubeconfig() + " --name old"}},
		{"images are loaded", func() error { return c.Load(t.Context(), "bin/images/operator.tar") }, []string{"kind load image-archive bin/images/operator.tar --name new"}},
		{"logs are exported", func() error { return c.Logs(t.Context(), "logs") }, []string{"kind export logs logs --name new"}},
		{"nodes are shown", func() error { return c.Status(t.Context()) }, []string{"kind get nodes --name new"}},
		{"it is deleted", func() error { return c.Down(t.Context()) }, []string{"kind delete cluster --kubeconfig " + c.Kubeconfig() + " --name new"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if err := test.do(); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if got := calls(); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of a deleted cluster is left: %v", err)
	}
}

// TestKindFails expects what kind said in the error, and the files of a cluster that it could not
// delete to stay.
func TestKindFails(t *testing.T) {
	play(t, "docker")
	c := &Cluster{Name: "stuck", Dir: t.TempDir(), Out: &bytes.Buffer{}}
	if err := c.Down(t.Context()); err == nil || !strings.Contains(err.Error(), "failed to delete nodes") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(c.Dir); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := Possible(t.Context()); err == nil || !strings.Contains(err.Error(), "https://kind.sigs.k8s.io") {
		t.Errorf("without kind: %v", err)
	}
}
