package shipping

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	kubernetesVersion = "v1.37.1"
	definition        = "crd/clusterregistries.operator.clusterregistry.io"
	rollout           = "kubectl --namespace=clusterregistry-system rollout status deployment/clusterregistry-operator --timeout=5m"
)

// desk is where an administrator of the host types: a folder with files, and a
// kubectl that is about the test's namespace unless told otherwise.
type desk struct {
	t           *testing.T
	dir         string
	environment []string
}

// newDesk returns a desk with the file that "make dist" wrote on it.
func newDesk(t *testing.T, e *framework.Env) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	programs, home := t.TempDir(), t.TempDir()
	if err := os.Symlink(framework.Program(t, "kubernetes", kubernetesVersion, "kubectl"), filepath.Join(programs, "kubectl")); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	content, err := os.ReadFile(framework.ClusterKubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	d.environment = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "HOME="+home, "TMPDIR="+home)
	d.run("kubectl config set-context --current --namespace=" + e.Namespace)
	file, err := os.ReadFile(filepath.Join(framework.Root(t), "dist", "install.yaml"))
	if err != nil {
		t.Fatalf("this test needs the operator as one file, of the images that are installed: %v\n\"make dist\" writes it", err)
	}
	d.put("install.yaml", string(file))
	return d
}

// in returns the desk for a subtest, which is what fails then.
func (d *desk) in(t *testing.T) *desk {
	out := *d
	out.t = t
	return &out
}

// put puts a file on the desk.
func (d *desk) put(name, content string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// run types commands for bash, all of which must succeed, and returns what they print.
func (d *desk) run(commands string) string {
	d.t.Helper()
	out, err := d.try(commands)
	if err != nil {
		d.t.Fatalf("%v, after:\n%s\nof:\n%s", err, out, commands)
	}
	return out
}

// try is run for commands that may fail.
func (d *desk) try(commands string) (string, error) {
	cmd := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = d.dir, d.environment
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = errors.New(err.Error() + ": " + stderr.String())
	}
	return stdout.String(), err
}

// restore brings the operator back as "make install" left it, however far a test
// came.
func (d *desk) restore() {
	d.t.Helper()
	framework.Eventually(d.t, "the operator to be as it was", func(context.Context) error {
		// A namespace that is being deleted refuses, and a definition takes with it
		// what is applied to it.
		if out, err := d.try("kubectl apply --server-side --force-conflicts -f install.yaml"); err != nil {
			return errors.New(err.Error() + out)
		}
		deleted, err := d.try("kubectl get " + definition + " -o jsonpath={.metadata.deletionTimestamp}")
		if err != nil || deleted != "" {
			return cmp.Or(err, errors.New("its definition is still being deleted"))
		}
		_, err = d.try(rollout)
		return err
	})
}

// block returns the code in a document that is in the given language and
// contains the text.
func block(t *testing.T, document, language, text string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(framework.Root(t), document))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(content), "```")
	i := slices.IndexFunc(parts, func(part string) bool {
		return strings.HasPrefix(part, language+"\n") && strings.Contains(part, text)
	})
	if i < 0 {
		t.Fatalf("%s has no code in %s with %q", document, language, text)
	}
	return strings.TrimPrefix(parts[i], language+"\n")
}
