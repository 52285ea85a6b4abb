package main

import (
	"cmp"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const intro = `# Reference: %s

<!-- Written by "make update-codegen" from apis/operator/v1alpha1. Change the comments there. -->

Every field of %s, version %s, kind %s (short name %s). [configure.md](../how-to/configure.md) is the guide that shows how they are used; ` + "`kubectl explain %s.spec`" + ` shows the same as this page in a terminal.

"Refused with" quotes the sentence that answers a wrong value when the object is applied; "a change" is one of a field that was set before.
`

// document returns the reference in Markdown.
func document(crd *apiextensionsv1.CustomResourceDefinition) string {
	out, served := &strings.Builder{}, crd.Spec.Versions[0]
	fields, whole := walked(served.Schema.OpenAPIV3Schema)
	short := crd.Spec.Names.ShortNames[0]
	fmt.Fprintf(out, intro, crd.Spec.Names.Kind, "`"+crd.Spec.Group+"`", "`"+served.Name+"`", "`"+crd.Spec.Names.Kind+"`", "`"+short+"`", short)
	if len(whole) > 0 {
		fmt.Fprintln(out, "\nThe object as a whole is refused with:")
	}
	for _, message := range whole {
		fmt.Fprintf(out, "\n- %s\n", quoted(message))
	}
	writeSections(out, fields)
	fmt.Fprintf(out, "\n## Columns\n\nWhat `kubectl get %s` shows; those marked \"wide\" with `-o wide`.\n\n| Column | From | What it is |\n|---|---|---|\n", short)
	for _, column := range served.AdditionalPrinterColumns {
		wide := ""
		if column.Priority > 0 {
			wide = " (wide)"
		}
		fmt.Fprintf(out, "| %s%s | `%s` | %s |\n", column.Name, wide, column.JSONPath, cell(cmp.Or(column.Description, "the time since it was created")))
	}
	return out.String()
}

// writeSections writes a table for each section.
func writeSections(out *strings.Builder, fields []*field) {
	for _, section := range sections(fields) {
		fmt.Fprintf(out, "\n## %s\n\n| Field | Type | Default | Allowed | What it is |\n|---|---|---|---|---|\n", sectionOf(section[0]))
		for _, f := range section {
			fmt.Fprintln(out, row(f))
		}
	}
}

// sections groups fields by the section that they belong to, in the order in which
// the sections begin.
func sections(fields []*field) [][]*field {
	var out [][]*field
	at := map[string]int{}
	for _, f := range fields {
		name := sectionOf(f)
		if _, begun := at[name]; !begun {
			at[name] = len(out)
			out = append(out, nil)
		}
		out[at[name]] = append(out[at[name]], f)
	}
	return out
}

// sectionOf returns the heading that a field is under: each object of the spec has
// one of its own, and the status has one.
func sectionOf(f *field) string {
	parts := strings.Split(f.path, ".")
	if parts[0] == "spec" && (len(parts) > 2 || len(parts) == 2 && f.kind == "object") {
		return parts[0] + "." + parts[1]
	}
	return parts[0]
}

// row is a field's line in its table.
func row(f *field) string {
	kind := f.kind
	if f.required {
		kind += ", **required**"
	}
	refused := "A change may be refused with: "
	if f.fixed {
		kind, refused = kind+", **immutable**", "A change is refused with: "
	}
	about := []string{cell(f.description)}
	for _, message := range f.rules {
		about = append(about, "Refused with: "+quoted(message)+".")
	}
	for _, message := range f.changes {
		about = append(about, refused+quoted(message)+".")
	}
	fallback := f.fallback
	if fallback != "" {
		fallback = "`" + fallback + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", f.path, kind, fallback, cell(strings.Join(f.allowed, "; ")), strings.Join(about, " "))
}

// quoted returns what the API server says.
func quoted(message string) string { return "\"" + cell(message) + "\"" }

// cell returns a text that fits into a cell of a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}
