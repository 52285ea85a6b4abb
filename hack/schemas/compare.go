package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// finding is a change that someone may notice.
type finding struct {
	// kind and path say where it is, what says what changed and whom it hurts.
	kind, path, what string
	// warning is true where only a person can tell whether it hurts.
	warning bool
}

// String returns the finding as a line for people.
func (f finding) String() string {
	if f.path == "" {
		return f.kind + ": " + f.what
	}
	return f.kind + ", " + f.path + ": " + f.what
}

// comparison collects the findings of one kind.
type comparison struct {
	kind string
	out  []finding
}

// compare returns what users of the schemas before can no longer do with those now.
func compare(before, now map[string]resource) []finding {
	var out []finding
	for _, kind := range slices.Sorted(maps.Keys(before)) {
		c := &comparison{kind: kind}
		if old, is := now[kind]; is {
			c.resource(before[kind], old)
		} else {
			c.refuse("", "is no longer served: its clients fail")
		}
		out = append(out, c.out...)
	}
	return out
}

func (c *comparison) refuse(path, format string, args ...any) {
	c.out = append(c.out, finding{kind: c.kind, path: path, what: fmt.Sprintf(format, args...)})
}

func (c *comparison) warn(path, format string, args ...any) {
	c.out = append(c.out, finding{kind: c.kind, path: path, what: fmt.Sprintf(format, args...), warning: true})
}

func (c *comparison) resource(before, now resource) {
	if before.Scope != now.Scope || before.Plural != now.Plural {
		c.refuse("", "was %s, scope %s, and is %s, scope %s: its paths change", before.Plural, before.Scope, now.Plural, now.Scope)
	}
	if before.Status && !now.Status {
		c.refuse("", "has no subresource status any more: whoever writes the status fails")
	}
	if before.Scale && !now.Scale {
		c.refuse("", "has no subresource scale any more: autoscalers fail")
	}
	for _, field := range before.Fields {
		if !slices.Contains(now.Fields, field) {
			c.refuse(strings.TrimPrefix(field, "."), "can no longer be selected by: watches with that field selector fail")
		}
	}
	c.schema("", before.Schema, now.Schema)
}

// schema compares the schemas at one path, and all below.
func (c *comparison) schema(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	if before.Type != now.Type || before.Format != now.Format || before.XIntOrString != now.XIntOrString || or(before.Ref, "") != or(now.Ref, "") {
		c.refuse(path, "was %s and is %s: clients write and read the former", typeOf(before), typeOf(now))
		return
	}
	if before.Nullable && !now.Nullable {
		c.refuse(path, "no longer takes null: manifests with null are refused")
	}
	c.values(path, before, now)
	c.defaults(path, before, now)
	c.bounds(path, before, now)
	c.merging(path, before, now)
	c.rules(path, before, now)
	c.fields(path, before, now)
	if before.Items != nil && before.Items.Schema != nil && now.Items != nil && now.Items.Schema != nil {
		c.schema(path+"[]", before.Items.Schema, now.Items.Schema)
	}
	if keys := before.AdditionalProperties; keys != nil && keys.Schema != nil {
		if now.AdditionalProperties == nil || now.AdditionalProperties.Schema == nil {
			c.refuse(path, "no longer takes any key: stored keys are lost")
		} else {
			c.schema(path+"[*]", keys.Schema, now.AdditionalProperties.Schema)
		}
	}
}

func (c *comparison) values(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	if len(now.Enum) == 0 {
		return
	}
	if len(before.Enum) == 0 {
		c.refuse(path, "took any value and takes %s only: all others are refused", raw(now.Enum))
		return
	}
	gone := slices.DeleteFunc(slices.Clone(before.Enum), func(value apiextensionsv1.JSON) bool {
		return slices.ContainsFunc(now.Enum, func(other apiextensionsv1.JSON) bool { return text(&other) == text(&value) })
	})
	if len(gone) > 0 {
		c.refuse(path, "no longer takes %s: stored objects with it can't be written", raw(gone))
	}
}

func (c *comparison) defaults(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	was, is := text(before.Default), text(now.Default)
	switch {
	case was == is:
	case was == "":
		c.warn(path, "has the default %s, and had none: objects that leave it out must mean the same as before", is)
	case is == "":
		c.refuse(path, "has no default any more, and had %s: objects that leave it out mean something else", was)
	default:
		c.refuse(path, "has the default %s, and had %s: objects that leave it out mean something else", is, was)
	}
}

func (c *comparison) bounds(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	most(c, path, "maximum", before.Maximum, now.Maximum)
	most(c, path, "maxLength", before.MaxLength, now.MaxLength)
	most(c, path, "maxItems", before.MaxItems, now.MaxItems)
	most(c, path, "maxProperties", before.MaxProperties, now.MaxProperties)
	least(c, path, "minimum", before.Minimum, now.Minimum)
	least(c, path, "minLength", before.MinLength, now.MinLength)
	least(c, path, "minItems", before.MinItems, now.MinItems)
	least(c, path, "minProperties", before.MinProperties, now.MinProperties)
	if now.ExclusiveMaximum && !before.ExclusiveMaximum || now.ExclusiveMinimum && !before.ExclusiveMinimum {
		c.refuse(path, "no longer takes its bound itself: that value is refused")
	}
	if now.Pattern != "" && now.Pattern != before.Pattern {
		c.refuse(path, "has another pattern, %s: values that match %s may be refused", now.Pattern, cmp.Or(before.Pattern, "no pattern"))
	}
	if now.UniqueItems && !before.UniqueItems {
		c.refuse(path, "takes no duplicates any more: lists with them are refused")
	}
	if now.MultipleOf != nil && (before.MultipleOf == nil || *before.MultipleOf != *now.MultipleOf) {
		c.refuse(path, "takes multiples of %v only: all others are refused", *now.MultipleOf)
	}
}

// most compares upper bounds, of which none is the greatest.
func most[T cmp.Ordered](c *comparison, path, name string, before, now *T) {
	if now != nil && (before == nil || *now < *before) {
		c.refuse(path, "%s was %s and is %v: what is above is refused", name, bound(before), *now)
	}
}

// least compares lower bounds, of which none is the least.
func least[T cmp.Ordered](c *comparison, path, name string, before, now *T) {
	if now != nil && (before == nil || *now > *before) {
		c.refuse(path, "%s was %s and is %v: what is below is refused", name, bound(before), *now)
	}
}

func (c *comparison) merging(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	for _, how := range []struct{ name, before, now string }{
		{"x-kubernetes-list-type", or(before.XListType, "atomic"), or(now.XListType, "atomic")},
		{"x-kubernetes-list-map-keys", strings.Join(before.XListMapKeys, ","), strings.Join(now.XListMapKeys, ",")},
		{"x-kubernetes-map-type", or(before.XMapType, "granular"), or(now.XMapType, "granular")},
	} {
		if how.before != how.now {
			c.refuse(path, "%s was %q and is %q: server-side apply merges it in another way", how.name, how.before, how.now)
		}
	}
}

// rules warns of new rules. One that is about a change lets stored objects be.
func (c *comparison) rules(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range now.XValidations {
		known := slices.ContainsFunc(before.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == rule.Rule })
		if !known && !strings.Contains(rule.Rule, "oldSelf") {
			c.warn(path, "has a new rule, %s: stored objects that break it can't be changed there, so let pass what was so before (oldSelf)", rule.Rule)
		}
	}
}

func (c *comparison) fields(path string, before, now *apiextensionsv1.JSONSchemaProps) {
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	keeps := func(s *apiextensionsv1.JSONSchemaProps) bool {
		return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	}
	if keeps(before) && !keeps(now) {
		c.refuse(path, "no longer keeps fields that the schema does not have: they are lost")
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		old := before.Properties[name]
		child, is := now.Properties[name]
		switch {
		case is:
			c.schema(below(name), &old, &child)
		case !keeps(now):
			c.refuse(below(name), "is gone: what is stored in it is lost, and strict clients are refused")
		}
	}
	for _, name := range now.Required {
		// The default of a field is set before it is looked for.
		if !slices.Contains(before.Required, name) && now.Properties[name].Default == nil {
			c.refuse(below(name), "is required now: manifests without it are refused")
		}
	}
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Ref != nil:
		return *s.Ref
	case s.XIntOrString:
		return "int-or-string"
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	}
	return cmp.Or(s.Type, "of any type")
}

func bound[T any](value *T) string {
	if value == nil {
		return "not set"
	}
	return fmt.Sprint(*value)
}

// text returns a value in one spelling, which files may indent; "" for none.
func text(value *apiextensionsv1.JSON) string {
	if value == nil {
		return ""
	}
	var out bytes.Buffer
	if err := json.Compact(&out, value.Raw); err != nil {
		return string(value.Raw)
	}
	return out.String()
}

func or(value *string, fallback string) string {
	if value == nil {
		return fallback
	}
	return *value
}

func raw(values []apiextensionsv1.JSON) string {
	var out []string
	for _, value := range values {
		out = append(out, text(&value))
	}
	return strings.Join(out, ", ")
}
