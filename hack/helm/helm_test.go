package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/chart/content"
)

const (
	root      = "../../"
	chart     = root + content.Directory
	namespace = "clusterregistry-system"
)

// program is Helm, built of the version that go.mod names.
var program string

func TestMain(m *testing.M) {
	code, err := withHelm(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func withHelm(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "helm-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program = filepath.Join(dir, "helm")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", program, "helm.sh/helm/v4/cmd/helm")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build Helm: %w: %s", err, out)
	}
	return m.Run(), nil
}

// try runs Helm, which has a home of its own and no cluster.
func try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "absent")}
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), errors.New(strings.TrimSpace(stderr.String()) + " (" + err.Error() + ")")
	}
	return stdout.String(), nil
}

// run is try for what must succeed.
func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := try(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// objects are rendered ones by their identity, as "Kind namespace/name".
type objects map[string]map[string]any

func identity(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}

// rendered returns what Helm makes of the chart in the operator's usual namespace.
func rendered(t *testing.T, args ...string) objects {
	t.Helper()
	out := run(t, append([]string{"template", "any", chart, "--namespace=" + namespace}, args...)...)
	all := objects{}
	for document := range strings.SplitSeq("\n"+out, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v, in:\n%s", err, document)
		}
		if len(object.Object) == 0 {
			continue
		}
		if all[identity(&object)] != nil {
			t.Errorf("the chart renders %s twice", identity(&object))
		}
		all[identity(&object)] = object.Object
	}
	if len(all) == 0 {
		t.Fatalf("the chart renders nothing: %s", out)
	}
	return all
}

// differ returns the identities of the objects that are not the same in both, in order.
func differ(a, b objects) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !same(a[name], b[name]) {
			out = append(out, name)
		}
	}
	for name := range b {
		if a[name] == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// same compares objects as they are sent to a cluster.
func same(a, b any) bool {
	one, err1 := yaml.Marshal(a)
	other, err2 := yaml.Marshal(b)
	return err1 == nil && err2 == nil && string(one) == string(other)
}
