package v1alpha1

import (
	"os"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	crdFile   = "../../../manifests/operator/crd/operator.clusterregistry.io_clusterregistries.yaml"
	guideFile = "../../../docs/how-to/configure.md"
)

// TestFieldsAreDescribed looks for each field of the types in the CRD, where it
// must say what it is, and for each field of the spec in the guide's examples.
func TestFieldsAreDescribed(t *testing.T) {
	content, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	eachField(t, "", reflect.TypeFor[ClusterRegistry](), *crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path, name string, schema apiextensionsv1.JSONSchemaProps) {
		fields++
		// A description of a list's or a map's element does not count for the field.
		if !strings.HasPrefix(schema.Description, name+" ") {
			t.Errorf("%s: the description %q does not begin with the field's name", path, schema.Description)
		}
		if strings.HasPrefix(path, ".spec") && !strings.Contains(string(guide), name+":") {
			t.Errorf("%s is in no example of %s", path, guideFile)
		}
	})
	if fields < 80 {
		t.Errorf("only %d fields were found", fields)
	}
}

// eachField calls visit with each field of a type of this package, and of the
// types of this package within.
func eachField(t *testing.T, path string, of reflect.Type, schema apiextensionsv1.JSONSchemaProps, visit func(path, name string, schema apiextensionsv1.JSONSchemaProps)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice && schema.Items != nil {
			schema = *schema.Items.Schema
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[ClusterRegistry]().PkgPath() {
		return
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "metadata" || field.Name == "TypeMeta": // described by Kubernetes
		case strings.Contains(options, "inline"):
			eachField(t, path, field.Type, schema, visit)
		default:
			property, ok := schema.Properties[name]
			if !ok {
				t.Errorf("%s.%s is not in the CRD", path, name)
				continue
			}
			visit(path+"."+name, name, property)
			eachField(t, path+"."+name, field.Type, property, visit)
		}
	}
}
