package imports

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/hack/product"
)

// allowed are the modules that a program is linked from when it imports a library of this
// repository: Kubernetes' own, and what these stand on.
var allowed = map[string][]string{
	"apis/clusterregistry": {
		"github.com/fxamacker/cbor/v2", "github.com/go-logr/logr", "github.com/json-iterator/go", "github.com/modern-go/concurrent", "github.com/modern-go/reflect2", "github.com/x448/float16",
		"go.yaml.in/yaml/v2", "golang.org/x/net", "golang.org/x/text", "gopkg.in/inf.v0",
		"k8s.io/apimachinery", "k8s.io/klog/v2", "k8s.io/kube-openapi", "k8s.io/utils", "sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/structured-merge-diff/v6",
	},
	"client": {
		"github.com/davecgh/go-spew", "github.com/emicklei/go-restful/v3", "github.com/go-openapi/jsonpointer", "github.com/go-openapi/jsonreference", "github.com/go-openapi/swag", "github.com/google/gnostic-models",
		"github.com/google/uuid", "github.com/josharian/intern", "github.com/mailru/easyjson", "github.com/munnerz/goautoneg", "github.com/pmezard/go-difflib", "go.yaml.in/yaml/v3", "golang.org/x/oauth2", "golang.org/x/sys",
		"golang.org/x/term", "golang.org/x/time", "google.golang.org/protobuf", "gopkg.in/evanphx/json-patch.v4", "gopkg.in/yaml.v3", "k8s.io/api", "k8s.io/client-go", "sigs.k8s.io/yaml",
	},
}

// TestLibrariesStandOnFew asks the go command what each library consists of. The client may
// have all that the API types have.
func TestLibrariesStandOnFew(t *testing.T) {
	for library, modules := range allowed {
		if library == "client" {
			modules = slices.Concat(modules, allowed["apis/clusterregistry"])
		}
		linked := linked(t, filepath.Join(root, library), "./...")
		if !linked[product.Module+"/"+library] {
			t.Fatalf("%s is not linked from itself, but from %v", library, slices.Sorted(maps.Keys(linked)))
		}
		for module := range linked {
			if !strings.HasPrefix(module, product.Module+"/") && !slices.Contains(modules, module) {
				t.Errorf("%s needs %s, and so does everyone who imports it; do without, or allow it here", library, module)
			}
		}
	}
}

// TestLibrariesDoWithoutTheProduct expects that no library is linked from the operator, nor
// from what only servers need.
func TestLibrariesDoWithoutTheProduct(t *testing.T) {
	for _, library := range product.Libraries {
		linked := linked(t, filepath.Join(root, library), "./...")
		for _, module := range []string{product.Module, "k8s.io/apiserver", "go.etcd.io/etcd/client/v3"} {
			if linked[module] {
				t.Errorf("%s is linked from %s", library, module)
			}
		}
	}
}

// linked returns the modules of packages and of all that they import.
func linked(t *testing.T, dir string, packages ...string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for module := range strings.Lines(goIn(t, dir, append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)...)) {
		if module = strings.TrimSpace(module); module != "" {
			out[module] = true
		}
	}
	return out
}

func goIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v in %s: %v\n%s", args, dir, err, stderr.String())
	}
	return string(out)
}

// outside is a program of others.
const outside = `package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/client/informers"
)

func main() {
	client := versioned.NewForConfigOrDie(&rest.Config{Host: "https://127.0.0.1:1"})
	clusters := informers.NewSharedInformerFactory(client, 0).Clusterregistry().V1beta1().Clusters()
	go clusters.Informer().RunWithContext(context.Background())
	fmt.Println(clusters.Informer().HasSynced())
}
`

// TestClientFromOutside builds a program of a module of its own. Replacements stand for
// what a release publishes; what the go command then chooses is what the libraries require,
// neither the operator nor a newer Kubernetes.
func TestClientFromOutside(t *testing.T) {
	dir := t.TempDir()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"module example.com/outside", "go 1.25.0", "require " + product.Module + "/client v0.0.0"}
	for _, library := range []string{"apis/clusterregistry", "client"} {
		lines = append(lines, "replace "+product.Module+"/"+library+" => "+filepath.Join(absolute, library))
	}
	sums, err := os.ReadFile(filepath.Join(root, "client", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": strings.Join(lines, "\n") + "\n", "go.sum": string(sums), "main.go": outside} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goIn(t, dir, "mod", "tidy")
	goIn(t, dir, "build", "-o", filepath.Join(dir, "program"), ".")
	for module := range linked(t, dir, ".") {
		if module == product.Module {
			t.Errorf("the program is linked from %s", module)
		}
	}
	for _, module := range strings.Fields(goIn(t, dir, "list", "-m", "-f", "{{.Path}}", "all")) {
		if module == product.Module || module == "k8s.io/apiserver" || module == "sigs.k8s.io/controller-runtime" {
			t.Errorf("go.mod of the program needs %s", module)
		}
	}
	client := modules(t, "client/go.mod")
	for _, name := range []string{"k8s.io/client-go", "k8s.io/apimachinery"} {
		if got := strings.TrimSpace(goIn(t, dir, "list", "-m", "-f", "{{.Version}}", name)); got != client[name] || got == "" {
			t.Errorf("the program is given %s %s, and client/go.mod requires %q", name, got, client[name])
		}
	}
}

// modules returns the versions that a go.mod requires.
func modules(t *testing.T, name string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(name, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, required := range file.Require {
		out[required.Mod.Path] = required.Mod.Version
	}
	return out
}

// TestLibrariesAreKnown expects each module outside of hack where others name it: "make"
// tests, lints and tidies those of its list alone.
func TestLibrariesAreKnown(t *testing.T) {
	var found []string
	listed, err := git.Run(t.Context(), root, "ls-files", "--cached", "--others", "--exclude-standard", "*go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(listed) {
		if dir := filepath.Dir(strings.TrimSpace(name)); dir != "." && !strings.HasPrefix(dir, "hack") {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	if known := slices.Sorted(slices.Values(product.Libraries)); !slices.Equal(found, known) {
		t.Errorf("the modules are %v, and hack/product lists %v", found, known)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if line := "LIBRARIES := " + strings.Join(product.Libraries, " ") + "\n"; !strings.Contains(string(makefile), line) {
		t.Errorf("the Makefile lacks %q", line)
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for module := range modules(t, "go.mod") {
		if dir, ours := strings.CutPrefix(module, product.Module+"/"); ours && !strings.Contains(string(dockerfile), "COPY "+dir+"/go.mod "+dir+"/go.sum "+dir+"/\n") {
			t.Errorf("the Dockerfile does not copy %s/go.mod before it downloads modules", dir)
		}
	}
}
