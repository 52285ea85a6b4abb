package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestSchemaOfV1beta1 compares the schema with the one that the first release
// with v1beta1 serves: clients and stored objects rely on it, so a later release
// must not change it. What it lacks belongs to a new version.
func TestSchemaOfV1beta1(t *testing.T) {
	const golden = "testdata/v1beta1.json"
	definitions := map[string]any{}
	for name, definition := range GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + common.EscapeJsonPointer(name))
	}) {
		if strings.HasPrefix(name, "io.k8s.clusterregistry.v1beta1.") {
			definitions[name] = definition.Schema
		}
	}
	if len(definitions) == 0 {
		t.Fatal("v1beta1 has no definitions")
	}
	got, err := json.MarshalIndent(definitions, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the schema of v1beta1 differs from %s, which releases serve; compare with \"go test ./apiserver/openapi -update\" and git diff", golden)
	}
}
