package v1alpha1

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestSetDefaults lets the schema, as the host does, and SetDefaults fill in the
// same objects.
func TestSetDefaults(t *testing.T) {
	structural := specSchema(t)
	for reason, object := range map[string]string{
		"nothing but what is required": `{spec: {etcd: {replicas: 1}}}`,
		"each optional part, empty": `{spec: {images: {}, etcd: {storage: {}}, tls: {issuerRef: {}}, controllers: {health: {}, registerHost: {}, clusterAPI: {}},
			server: {service: {}, authentication: {configMapRef: {}}, authorization: {webhookSecretRef: {}}}}}`,
		"nothing to fill in": `{spec: {deletionPolicy: Delete, images: {pullPolicy: Always}, etcd: {storage: {size: 1Gi}}, tls: {duration: 1h, issuerRef: {kind: ClusterIssuer, group: example.org}}, controllers: {health: {periodSeconds: 5}},
			server: {replicas: 1, service: {type: NodePort}, authentication: {configMapRef: {key: a}}, authorization: {webhookSecretRef: {key: b}}}}}`,
		"no other server decides": `{spec: {etcd: {replicas: 1}, server: {authorization: {guardedFields: Enforce}}}}`,
	} {
		tree := map[string]any{}
		if err := yaml.Unmarshal([]byte(object), &tree); err != nil {
			t.Fatal(err)
		}
		got := typed(t, tree)
		SetDefaults(got)
		defaulting.Default(tree, structural)
		if want := typed(t, tree); !apiequality.Semantic.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("%s: SetDefaults makes it\n%s\nand the schema\n%s", reason, text(t, got.Spec), text(t, want.Spec))
		}
	}
}

// TestNoDefaultsInLists keeps defaults out of the entries of lists: tools that compare lists as a
// whole would find a difference for ever in an object that leaves such a field out.
func TestNoDefaultsInLists(t *testing.T) {
	defaults := 0
	var walk func(path string, listed bool, s *schema.Structural)
	walk = func(path string, listed bool, s *schema.Structural) {
		if s == nil {
			return
		}
		if s.Default.Object != nil {
			defaults++
			if listed {
				t.Errorf("%s has the default %v: let readers of the field apply it", path, s.Default.Object)
			}
		}
		walk(path+"[]", true, s.Items)
		for name, property := range s.Properties {
			walk(path+"."+name, listed, &property)
		}
		if s.AdditionalProperties != nil {
			walk(path+"{}", true, s.AdditionalProperties.Structural)
		}
	}
	for _, file := range []string{crdFile, backupCRDFile, selectionCRDFile} {
		root := rootSchema(t, file)
		structural, err := schema.NewStructural(&root)
		if err != nil {
			t.Fatal(err)
		}
		walk("", false, structural)
	}
	if defaults == 0 {
		t.Error("no default was found at all")
	}
}

func typed(t *testing.T, tree map[string]any) *ClusterRegistry {
	t.Helper()
	out := &ClusterRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, spec ClusterRegistrySpec) string {
	t.Helper()
	out, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func specSchema(t *testing.T) *schema.Structural {
	t.Helper()
	internal := rootSchema(t, crdFile)
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return structural
}
