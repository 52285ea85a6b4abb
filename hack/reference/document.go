package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const intro = `# Reference: %s

<!-- Written by "make update-codegen" from apis/operator/v1alpha1. Change the comments there. -->

Every field of %s, version %s, kind %s (short name %s). [%[7]s](../how-to/%[7]s) shows how they are used; ` + "`kubectl explain %[6]s.spec`" + ` shows the same as this page in a terminal.

The error for a value that is not valid says what to write: try a spec with ` + "`kubectl apply --dry-run=server`" + `. "A change" is one of a field that was set before.
`

// guides are the pages that show how the fields of a kind are used.
var guides = map[string]string{
	"ClusterRegistry":       "configure.md",
	"ClusterRegistryBackup": "back-up-and-restore.md",
	"ClusterSelection":      "selections.md",
}

// document returns the reference in Markdown.
func document(crd *apiextensionsv1.CustomResourceDefinition) string {
	out, served := &strings.Builder{}, crd.Spec.Versions[0]
	fields, whole := walked(served.Schema.OpenAPIV3Schema)
	short := crd.Spec.Names.ShortNames[0]
	kind := crd.Spec.Names.Kind
	fmt.Fprintf(out, intro, kind, code(crd.Spec.Group), code(served.Name), code(kind), code(short), short, guides[kind])
	if len(whole) > 0 {
		fmt.Fprintln(out, "\nThe object as a whole is refused with:")
	}
	for _, message := range whole {
		fmt.Fprintf(out, "\n- %s\n", quoted(message))
	}
	fields, cut := topmost(fields)
	writeSections(out, fields)
	if cut {
		fmt.Fprintf(out, "\n`kubectl explain %s.status.operation`, and so on, describes the fields within these.\n", short)
	}
	return out.String()
}

// manyFields is how many fields of a status a page describes: of a larger one, which is a record
// for people who have the object before them, only those at the top.
const manyFields = 100

// topmost names the fields within those at the top of a large status with these, in place of
// describing them, and reports whether it has.
func topmost(fields []*field) ([]*field, bool) {
	of := func(f *field) bool { return sectionOf(f) == "status" }
	all := slices.DeleteFunc(slices.Clone(fields), func(f *field) bool { return !of(f) })
	if len(all) <= manyFields {
		return fields, false
	}
	top := map[string]*field{}
	for _, f := range all {
		above, name := cutLast(f.path)
		if above == "" || above == "status" {
			top[f.path] = f
		} else if parent := top[strings.TrimSuffix(above, "[]")]; parent != nil {
			parent.within = append(parent.within, code(name))
		}
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f *field) bool { return of(f) && top[f.path] == nil }), true
}

// writeSections writes a list for each section. A message that several fields have is quoted at
// the first of them, and a field that is the same as one before is only named.
func writeSections(out *strings.Builder, fields []*field) {
	first, met := map[string]string{}, map[string]*field{}
	for _, all := range sections(fields) {
		section, repeated := apart(all, met)
		fmt.Fprintf(out, "\n## %s\n\n", sectionOf(section[0]))
		for _, f := range section {
			fmt.Fprintf(out, "- %s (%s): %s\n", code(f.path), strings.Join(nonEmpty(typed(f), defaulted(f)), "; "), about(f, first))
		}
		for _, r := range repeated {
			fmt.Fprintf(out, "\nThe same as in %s: %s.\n", code(r.of), strings.Join(r.fields, ", "))
		}
	}
}

// nonEmpty returns the texts that have something in them.
func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// defaulted names the default of a field, if it has one that says something.
func defaulted(f *field) string {
	value := fallback(f)
	if slices.Contains([]string{"", "none", "false", code("false"), "empty"}, value) {
		return ""
	}
	return "default: " + value
}

// repetition names fields that are the same as those of their names in another object.
type repetition struct {
	of     string
	fields []string
}

// apart takes the fields of a section apart: those to describe, and those that are the same as
// one that was met before, by the object that has that one.
func apart(section []*field, met map[string]*field) ([]*field, []*repetition) {
	var described []*field
	var repeated []*repetition
	for _, f := range section {
		_, name := cutLast(f.path)
		key := fmt.Sprint(name, typed(f), f.fallback, f.allowed, f.description, f.changes, f.like)
		before := met[key]
		if before == nil || sectionOf(f) == "status" {
			met[key] = f
			described = append(described, f)
			continue
		}
		above, _ := cutLast(before.path)
		at := slices.IndexFunc(repeated, func(r *repetition) bool { return r.of == above })
		if at < 0 {
			at, repeated = len(repeated), append(repeated, &repetition{of: above})
		}
		repeated[at].fields = append(repeated[at].fields, code(f.path))
	}
	return described, repeated
}

// cutLast cuts the last name off a path.
func cutLast(path string) (above, name string) {
	at := strings.LastIndex(path, ".")
	return path[:max(at, 0)], path[at+1:]
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

// typed is the type of a field with the values that it takes, and whether it has to be set or
// can be changed. No one sets the fields of a status.
func typed(f *field) string {
	kind := f.kind
	if len(f.within) > 0 {
		kind += " with " + strings.Join(f.within, ", ")
	}
	if sectionOf(f) == "status" {
		return kind
	}
	if f.required {
		kind += ", **required**"
	}
	if f.fixed {
		kind += ", **immutable**"
	}
	allowed := slices.DeleteFunc(slices.Clone(f.allowed), func(bound string) bool {
		return between.MatchString(bound) && strings.Contains(f.description, bound)
	})
	if len(allowed) > 0 {
		kind += ": " + line(strings.Join(allowed, "; "))
	}
	return kind
}

// between matches the bounds of a number.
var between = regexp.MustCompile(`^[0-9]+ to [0-9]+$`)

// about is what there is to say of a field. The map has the field at which each message
// was quoted first.
func about(f *field, first map[string]string) string {
	out := []string{described(f)}
	if f.like != "" {
		out = append(out, "It has the fields of "+code(f.like)+".")
	}
	changed := "A change may be refused with: "
	if f.fixed {
		changed = "A change is refused with: "
	}
	if quotes := quotedOnce(f.path, f.changes, first); quotes != "" {
		out = append(out, changed+quotes+".")
	}
	return strings.Join(out, " ")
}

// quotedOnce quotes the messages of a field that no field before had, and names those fields
// for the others.
func quotedOnce(path string, messages []string, first map[string]string) string {
	var out []string
	for _, message := range messages {
		quote := quoted(message)
		if at := first[message]; at != "" {
			quote = "as " + code(at)
		} else {
			first[message] = path
		}
		if !slices.Contains(out, quote) {
			out = append(out, quote)
		}
	}
	return strings.Join(out, "; ")
}

// counted matches the sentence about how many entries or keys there may be.
var counted = regexp.MustCompile(` At most ([0-9]+)\.`)

// described is the description of a field without what its line says anyway: its name in the
// beginning, as "kubectl explain" shows it, its default, and how many entries it may have.
func described(f *field) string {
	text := line(f.description)
	_, name := cutLast(f.path)
	name = strings.TrimSuffix(name, "[]")
	text = counted.ReplaceAllStringFunc(text, func(sentence string) string {
		most := counted.FindStringSubmatch(sentence)[1]
		if strings.Contains(strings.Join(f.allowed, ";"), most+" entries") || strings.Contains(strings.Join(f.allowed, ";"), most+" keys") {
			return ""
		}
		return sentence
	})
	for _, verb := range []string{" is ", " are "} {
		if rest, is := strings.CutPrefix(text, name+verb); is && len(rest) > 1 {
			text = strings.ToUpper(rest[:1]) + rest[1:]
			break
		}
	}
	text, _ = cutDefault(text)
	return text
}

// fallback is the default of a field: that of the schema or, where the operator fills it in,
// what the description ends with.
func fallback(f *field) string {
	if f.fallback != "" {
		return code(f.fallback)
	}
	_, text := cutDefault(line(f.description))
	return text
}

// cutDefault cuts the sentence about the default, if it is the last, off a description.
func cutDefault(text string) (rest, value string) {
	rest, value, found := strings.Cut(text, " Default: ")
	value, ends := strings.CutSuffix(value, ".")
	if !found || !ends || strings.Contains(value, ". ") {
		return text, ""
	}
	return rest, value
}

// code returns a text as code, or "" as it is.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// quoted returns what the API server says.
func quoted(message string) string { return "\"" + line(message) + "\"" }

// line returns a text that fits into a line of a list.
func line(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "<", "&lt;")
}
