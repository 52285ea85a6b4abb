package render

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

const (
	// maxConfigMap is what the host cluster takes as the data of a ConfigMap, and maxArgument
	// what Linux takes as an argument of a program.
	maxConfigMap = 1 << 20
	maxArgument  = 128 << 10
)

// TestGreatestGrants renders the largest grants that the schema takes: they reach the controller.
func TestGreatestGrants(t *testing.T) {
	content, err := os.ReadFile("../../manifests/operator/crd/operator.clusterregistry.io_clusterregistries.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	api := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["controllers"].Properties["clusterAPI"]
	greatest := map[string]any{"namespaces": []any{"a"}}
	for _, field := range []string{"accessTemplates", "clusterSets"} {
		greatest[field] = largest(t, field, api.Properties[field])
	}
	text, err := json.Marshal(greatest)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < maxArgument {
		t.Errorf("they have %d bytes: this test looks at something else", len(text))
	}
	in := input(t, merged(t, `{controllers: {clusterAPI: {namespaces: [a]}, registerHost: {name: host, url: "https://host.example"}}}`))
	in.Registry.Spec.Controllers.ClusterAPI = &operatorv1alpha1.ClusterAPI{}
	if err := json.Unmarshal(text, in.Registry.Spec.Controllers.ClusterAPI); err != nil {
		t.Fatal(err)
	}
	in.Registry.Spec.Controllers.RegisterHost.CABundle = []byte(strings.Repeat("x", 96<<10))
	result, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for key, value := range convert[corev1.ConfigMap](t, find(result, "ConfigMap", "fleet-controller")).Data {
		size += len(key) + len(value)
	}
	if size < maxArgument || size > maxConfigMap {
		t.Errorf("the ConfigMap of the controller has %d bytes, of %d", size, maxConfigMap)
	}
	for _, argument := range convert[appsv1.Deployment](t, find(result, "Deployment", "fleet-controller")).Spec.Template.Spec.Containers[0].Args {
		if len(argument) >= maxArgument {
			t.Errorf("an argument has %d bytes: %.80s", len(argument), argument)
		}
	}
}

// keySize is the rule that bounds the keys of a map.
var keySize = regexp.MustCompile(`^self\.all\(key, key\.size\(\) <= ([0-9]+)\)$`)

// largest returns the largest value that a schema takes, and fails where it has no bound.
func largest(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) any {
	t.Helper()
	switch {
	case schema.Type == "boolean":
		return false
	case schema.Type == "string" && len(schema.Enum) > 0:
		out := ""
		for _, value := range schema.Enum {
			var text string
			if err := json.Unmarshal(value.Raw, &text); err != nil {
				t.Fatal(err)
			}
			if len(text) > len(out) {
				out = text
			}
		}
		return out
	case schema.Type == "string" && schema.MaxLength != nil:
		return strings.Repeat("<", int(*schema.MaxLength)) // which JSON for HTML writes as six
	case schema.Type == "array" && schema.MaxItems != nil:
		out := []any{}
		for range *schema.MaxItems {
			out = append(out, largest(t, path+"[]", *schema.Items.Schema))
		}
		return out
	case schema.Type == "object" && schema.AdditionalProperties != nil && schema.MaxProperties != nil:
		for _, rule := range schema.XValidations {
			if found := keySize.FindStringSubmatch(rule.Rule); found != nil {
				n, err := strconv.Atoi(found[1])
				if err != nil {
					t.Fatal(err)
				}
				out := map[string]any{}
				for i := range *schema.MaxProperties {
					// Nothing else is said of keys: this character has six bytes in JSON.
					out[fmt.Sprint(i)+strings.Repeat("\x01", n-1)] = largest(t, path+".*", *schema.AdditionalProperties.Schema)
				}
				return out
			}
		}
	case schema.Type == "object" && len(schema.Properties) > 0:
		out := map[string]any{}
		for name, property := range schema.Properties {
			if _, either := schema.Properties["exec"]; either && name == "provider" {
				continue // which is the smaller one, and only one is taken
			}
			out[name] = largest(t, path+"."+name, property)
		}
		return out
	}
	t.Errorf("%s has no bound", path)
	return nil
}
