package v1alpha1

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
	crd := readCRD(t, crdFile)
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

// TestNumbersAreDescribed expects of each field of a spec that is a number, a duration, a size or
// a switch that it says what it is without a value, and of each bound that "kubectl explain" tells
// it: of numbers from and to, of lists and maps how many.
func TestNumbersAreDescribed(t *testing.T) {
	numbers, lists := 0, 0
	for _, file := range []string{crdFile, backupCRDFile, selectionCRDFile} {
		root := readCRD(t, file).Spec.Versions[0].Schema.OpenAPIV3Schema
		eachProperty("spec", root.Properties["spec"], func(path string, parent, s apiextensionsv1.JSONSchemaProps) {
			required := slices.Contains(parent.Required, path[strings.LastIndex(path, ".")+1:])
			duration := slices.ContainsFunc(s.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
				return strings.Contains(rule.Rule, "duration(self)")
			})
			says := func(what, value string) {
				if !regexp.MustCompile(`(^|[^0-9])` + regexp.QuoteMeta(value) + `($|[^0-9])`).MatchString(s.Description) {
					t.Errorf("%s does not say its %s, %s: %q", path, what, value, s.Description)
				}
			}
			if s.Type == "integer" || s.Type == "boolean" || s.XIntOrString || duration {
				numbers++
				if !required && !strings.Contains(s.Description, "Default:") && !strings.Contains(s.Description, "Required ") && !strings.HasSuffix(path, ".latest") {
					t.Errorf("%s does not say what it is without a value (\"Default:\"): %q", path, s.Description)
				}
				if s.Default != nil {
					says("default", strings.Trim(string(s.Default.Raw), `"`))
				}
				if s.Minimum != nil {
					says("minimum", strconv.FormatFloat(*s.Minimum, 'f', -1, 64))
				}
				if s.Maximum != nil {
					says("maximum", strconv.FormatFloat(*s.Maximum, 'f', -1, 64))
				}
			}
			for _, most := range []*int64{s.MaxItems, s.MaxProperties} {
				if most != nil {
					lists++
					says("greatest number of entries", strconv.FormatInt(*most, 10))
				}
			}
		})
	}
	if numbers < 30 || lists < 20 {
		t.Errorf("only %d numbers and %d lists were found", numbers, lists)
	}
}

// TestOptionalFieldsAreDescribed expects of each field of a spec that may be left out that it says
// what is then the case, or when it may not be. Of alternatives of which one is required, the rule
// of the object that has them says it.
func TestOptionalFieldsAreDescribed(t *testing.T) {
	fields, alternatives := 0, 0
	for _, file := range []string{crdFile, backupCRDFile, selectionCRDFile} {
		root := readCRD(t, file).Spec.Versions[0].Schema.OpenAPIV3Schema
		eachProperty("spec", root.Properties["spec"], func(path string, parent, s apiextensionsv1.JSONSchemaProps) {
			name := path[strings.LastIndex(path, ".")+1:]
			switch {
			case slices.Contains(parent.Required, name):
			case oneOf(parent, name):
				alternatives++
			default:
				fields++
				if !strings.Contains(s.Description, "Default:") && !strings.Contains(s.Description, "Required ") {
					t.Errorf("%s says neither what it is without a value (\"Default:\") nor when it needs one (\"Required \"): %q", path, s.Description)
				}
			}
		})
	}
	if fields < 100 || alternatives < 15 {
		t.Errorf("only %d optional fields and %d alternatives were found", fields, alternatives)
	}
}

// oneOf reports whether a rule of an object requires one of several of its fields, of which this
// is one.
func oneOf(object apiextensionsv1.JSONSchemaProps, name string) bool {
	return slices.ContainsFunc(object.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		counts := strings.HasSuffix(rule.Rule, " == 1") || strings.Contains(rule.Rule, " ? 1 : 0) == (")
		either := regexp.MustCompile(`^has\(self\.\w+\) != has\(self\.\w+\)$`).MatchString(rule.Rule)
		return (counts || either) && strings.Contains(rule.Rule, "has(self."+name+")")
	})
}

// TestStatusTakesAnyValue expects no list of values in a status: an operator that is newer than
// the host cluster's definition could not report what is new.
func TestStatusTakesAnyValue(t *testing.T) {
	fields := 0
	for _, file := range []string{crdFile, backupCRDFile, selectionCRDFile} {
		root := readCRD(t, file).Spec.Versions[0].Schema.OpenAPIV3Schema
		eachProperty("status", root.Properties["status"], func(path string, _, s apiextensionsv1.JSONSchemaProps) {
			fields++
			if len(s.Enum) > 0 && !strings.Contains(path, ".conditions[]") {
				t.Errorf("%s takes only certain values", path)
			}
		})
	}
	if fields < 80 {
		t.Errorf("only %d fields were found", fields)
	}
}

func readCRD(t *testing.T, file string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// eachProperty calls visit with each field below a schema, but for the insides of Kubernetes' own
// types, whose texts are cut.
func eachProperty(path string, s apiextensionsv1.JSONSchemaProps, visit func(path string, parent, s apiextensionsv1.JSONSchemaProps)) {
	if s.Items != nil && s.Items.Schema != nil {
		eachProperty(path+"[]", *s.Items.Schema, visit)
	}
	for name, child := range s.Properties {
		visit(path+"."+name, s, child)
		if !slices.Contains([]string{"affinity", "dnsConfig", "selector", "seLinuxOptions", "tolerations", "topologySpreadConstraints"}, name) {
			eachProperty(path+"."+name, child, visit)
		}
	}
}
