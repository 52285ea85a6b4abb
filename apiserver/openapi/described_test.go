package openapi

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const models = "io.k8s.clusterregistry.v1beta1."

// TestFieldsAreDescribed reads each field of a spec as "kubectl explain" shows it: its text begins
// with its name, and says what is the case without a value where it may be left out, and what is
// too long or too many. A field that takes certain values only lists them.
func TestFieldsAreDescribed(t *testing.T) {
	definitions := GetOpenAPIDefinitions(spec.MustCreateRef)
	absent := regexp.MustCompile(`(Empty|None|Absent) means |Default:\s|Exactly one of `)
	bounded := regexp.MustCompile(`(?i)at most \d+|from \d+ to \d+|in the form of a label's `)
	fields, enums := 0, 0
	eachField(definitions, "ClusterSpec", "spec", func(path string, required bool, s spec.Schema) {
		fields++
		if name := path[strings.LastIndex(path, ".")+1:]; !strings.HasPrefix(s.Description, name+" ") {
			t.Errorf("%s: the text does not begin with the field's name: %q", path, s.Description)
		}
		text := strings.Join(strings.Fields(s.Description), " ")
		if !required && !absent.MatchString(text) {
			t.Errorf("%s does not say what is the case without it: %q", path, text)
		}
		switch {
		case len(s.Enum) > 0:
			enums++
		case len(s.Type) > 0 && s.Type[0] != "boolean" && !bounded.MatchString(text):
			t.Errorf("%s does not say how long, how large or how many it may be: %q", path, text)
		}
	})
	eachField(definitions, "ClusterSetSpec", "spec", func(path string, required bool, s spec.Schema) {
		fields++
		if text := s.Description; required || !absent.MatchString(text) || !bounded.MatchString(text) {
			t.Errorf("%s does not say what is the case without it, or how long it may be: %q", path, text)
		}
	})
	if fields < 45 || enums != 3 {
		t.Errorf("%d fields were found, %d of them with certain values only", fields, enums)
	}
}

// eachField calls visit with each field below a type of v1beta1.
func eachField(definitions map[string]common.OpenAPIDefinition, of, path string, visit func(path string, required bool, s spec.Schema)) {
	definition := definitions[models+of].Schema
	for name, property := range definition.Properties {
		at := path + "." + name
		visit(at, slices.Contains(definition.Required, name), property)
		below := property
		if property.Items != nil && property.Items.Schema != nil {
			below, at = *property.Items.Schema, at+"[]"
		}
		if len(below.AllOf) == 1 {
			below = below.AllOf[0]
		}
		if ref := below.Ref.String(); ref != "" {
			eachField(definitions, strings.TrimPrefix(ref, models), at, visit)
		}
	}
}
