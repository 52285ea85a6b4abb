package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// field is what is to be known of a field.
type field struct {
	// path leads to it from the top of the object, with [] after a list.
	path, kind, fallback string
	required             bool
	// fixed is true when no change at all is possible.
	fixed bool
	// allowed are bounds and values, in words.
	allowed []string
	// changes are what refuses a change.
	changes     []string
	description string
	// like is the path of an earlier field with the same fields below it.
	like string
	// within are the names of the fields below it that are not described.
	within []string
}

// foreign are fields of Kubernetes' own types, whose insides its documentation
// describes.
var foreign = map[string]string{
	"affinity":                  "Affinity of a pod",
	"dnsConfig":                 "PodDNSConfig of a pod",
	"seLinuxOptions":            "SELinuxOptions of a pod",
	"tolerations":               "Toleration of a pod",
	"topologySpreadConstraints": "TopologySpreadConstraint of a pod",
	"conditions":                "Condition",
}

// foreignType returns Kubernetes' own type of a field, "" when it has none: a list of the same
// name whose entries have rules is of a type of this API.
func foreignType(name string, schema *apiextensionsv1.JSONSchemaProps) string {
	if schema.Items != nil && schema.Items.Schema != nil && len(schema.Items.Schema.XValidations) > 0 {
		return ""
	}
	return foreign[name]
}

// labelSelector is the type of Kubernetes that is told by its fields, whatever its name.
const labelSelector = "LabelSelector"

// named is the type of an object that names another one, and says nothing else.
const named = "object with `name`"

// walk collects the fields of a schema, in the order of their paths.
type walk struct {
	fields []*field
	byPath map[string]*field
	// rules are those of each path: some are met before their field is.
	rules map[string]apiextensionsv1.ValidationRules
	// objects are the paths of larger objects by what is below them.
	objects map[string]string
}

// walked returns all fields of an object, and the rules that are about none of
// them but the whole.
func walked(schema *apiextensionsv1.JSONSchemaProps) ([]*field, []string) {
	w := &walk{byPath: map[string]*field{}, rules: map[string]apiextensionsv1.ValidationRules{}, objects: map[string]string{}}
	w.object("", schema)
	var whole []string
	for _, path := range slices.Sorted(maps.Keys(w.rules)) {
		for _, rule := range w.rules[path] {
			f := w.at(path)
			switch {
			case w.has(f, rule.Message):
			case f == nil:
				whole = append(whole, rule.Message)
			case strings.Contains(rule.Rule, "oldSelf") && rule.OptionalOldSelf == nil:
				f.changes = append(f.changes, rule.Message)
				f.fixed = f.fixed || fixes(rule)
			}
		}
	}
	return w.fields, whole
}

// at returns the field of a path, or the one that stands for it in an earlier object with
// the same fields. It is nil for the whole object.
func (w *walk) at(path string) *field {
	for above := range w.byPath {
		if below, is := strings.CutPrefix(path, above+"."); is && w.byPath[above].like != "" {
			return w.byPath[w.byPath[above].like+"."+below]
		}
	}
	return w.byPath[path]
}

// has reports whether a message is one of a field, or of the one that it refers to.
func (w *walk) has(f *field, message string) bool {
	return f != nil && (slices.Contains(f.changes, message) || w.has(w.byPath[f.like], message))
}

// fixes reports whether a rule refuses every change of the field that it is about:
// it compares that with what it was and nothing else. Any other rule about a change, as that
// a number can grow, speaks for itself.
func fixes(rule apiextensionsv1.ValidationRule) bool {
	return rule.Rule == "self"+rule.FieldPath+" == oldSelf"+rule.FieldPath
}

func (w *walk) object(path string, schema *apiextensionsv1.JSONSchemaProps) {
	w.keep(path, schema)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		child := schema.Properties[name]
		if path == "" && !slices.Contains([]string{"spec", "status"}, name) {
			continue // what every object has
		}
		w.field(strings.TrimPrefix(path+"."+name, "."), name, &child, slices.Contains(schema.Required, name))
	}
}

func (w *walk) field(path, name string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
	// What follows the text of a field repeats its values.
	text, _, _ := strings.Cut(schema.Description, "\n\nPossible enum values:\n")
	f := &field{path: path, kind: kind(name, schema), required: required, description: text, allowed: bounds(schema)}
	// That of the status says only that nothing has reported yet.
	if schema.Default != nil && string(schema.Default.Raw) != "{}" && path != "status" {
		f.fallback = strings.Trim(string(schema.Default.Raw), `"`)
	}
	w.fields = append(w.fields, f)
	w.byPath[path] = f
	if foreignType(name, schema) != "" || f.kind == labelSelector || strings.HasSuffix(f.kind, named) {
		return
	}
	if f.like = w.earlier(path, schema); f.like != "" {
		return
	}
	w.object(path, schema)
	if schema.Items != nil {
		items := schema.Items.Schema
		f.allowed = append(f.allowed, each(bounds(items))...)
		for i := range items.XValidations {
			items.XValidations[i].FieldPath = ""
		}
		w.keep(path, items)
		items.XValidations = nil
		w.object(path+"[]", items)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil && kind(name, schema.AdditionalProperties.Schema) == "string" {
		f.allowed = append(f.allowed, each(bounds(schema.AdditionalProperties.Schema))...)
	}
}

// earlier returns the path of the object that was met before with the same fields and rules
// as this one, or "". An object with one field is shorter than a reference.
func (w *walk) earlier(path string, schema *apiextensionsv1.JSONSchemaProps) string {
	if len(schema.Properties) < 2 {
		return ""
	}
	below, err := json.Marshal(apiextensionsv1.JSONSchemaProps{Properties: schema.Properties, Required: schema.Required, XValidations: schema.XValidations})
	if err != nil {
		return ""
	}
	if met := w.objects[string(below)]; met != "" {
		return met
	}
	w.objects[string(below)] = path
	return ""
}

// keep files rules by the field that they are about: those about changes, and those about the
// whole object. Anyone who breaks another one is told what to write.
func (w *walk) keep(path string, schema *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range schema.XValidations {
		if path != "" && !strings.Contains(rule.Rule, "oldSelf") {
			continue
		}
		at := strings.TrimPrefix(path+rule.FieldPath, ".")
		w.rules[at] = append(w.rules[at], rule)
	}
}

// kind names a type as a person would.
func kind(name string, schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "quantity"
	case schema.Properties["matchLabels"].Type != "" && schema.Properties["matchExpressions"].Type != "":
		return labelSelector
	case len(schema.Properties) == 1 && schema.Properties["name"].Type == "string":
		return named
	case schema.Format == "date-time":
		return "time"
	case schema.Format == "byte":
		return "base64"
	case schema.Items != nil:
		return "list of " + cmp.Or(foreignType(name, schema), kind("", schema.Items.Schema))
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map to " + kind("", schema.AdditionalProperties.Schema)
	}
	return cmp.Or(foreignType(name, schema), schema.Type)
}

// bounds returns what values a schema lets pass, in words. The length of a text is left to the
// server, which names the limit when it refuses one.
func bounds(s *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		out = append(out, strings.Join(values, ", "))
	}
	if s.Minimum != nil && s.Maximum != nil {
		out = append(out, fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum))
	}
	out = append(out, limits("entries", s.MinItems, s.MaxItems)...)
	out = append(out, limits("keys", s.MinProperties, s.MaxProperties)...)
	if s.Pattern != "" && !s.XIntOrString {
		out = append(out, "`"+s.Pattern+"`")
	}
	return out
}

func limits(what string, least, most *int64) []string {
	switch {
	case least != nil && most != nil:
		return []string{fmt.Sprintf("%d to %d %s", *least, *most, what)}
	case most != nil:
		return []string{fmt.Sprintf("at most %d %s", *most, what)}
	case least != nil:
		return []string{fmt.Sprintf("at least %d %s", *least, what)}
	}
	return nil
}

// each says that bounds are those of every entry.
func each(bounds []string) []string {
	for i := range bounds {
		bounds[i] = "each " + bounds[i]
	}
	return bounds
}
