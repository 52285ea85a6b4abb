package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// schemaFile has the schema of v1beta1 as the server publishes it; a test
	// beside it compares it with the generated one.
	schemaFile = "apiserver/openapi/testdata/v1beta1.json"

	definitions = "#/definitions/"
	v1beta1     = "io.k8s.clusterregistry.v1beta1."
)

// page is a kind of the registry's API with the page about it.
type page struct {
	name, short, file, more string
}

var (
	cluster = page{"Cluster", "crc", "docs/reference/cluster.md", "[add-a-cluster.md](../how-to/add-a-cluster.md) shows how they are used; `kubectl explain crc.spec` shows the same as this page in a terminal. " +
		"[apiserver.md](apiserver.md) has the limits of sizes, and [what `v1alpha1` shows of it](apiserver.md#two-versions-of-one-cluster)."}
	clusterSet = page{"ClusterSet", "crset", "docs/reference/clusterset.md", "[clustersets.md](../how-to/clustersets.md) says what a set is for and who may put clusters in it."}

	pages = []page{cluster, clusterSet}
)

const pageIntro = `# Reference: %s

<!-- Written by "make update-codegen" from apis/clusterregistry/v1beta1. Change the comments there. -->

Every field of %s, version %s, kind %s (short name %s). %s
`

// pageOf returns the page about a kind, from the schema in a file.
func pageOf(file string, of page) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	s := schemas{}
	if err := json.Unmarshal(content, &s); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	whole, err := s.resolved(s[v1beta1+of.name])
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	out := &strings.Builder{}
	fmt.Fprintf(out, pageIntro, of.name, "`clusterregistry.k8s.io`", "`v1beta1`", "`"+of.name+"`", "`"+of.short+"`", of.more)
	fields, _ := walked(&whole)
	writeSections(out, fields)
	return out.String(), nil
}

// schemas are definitions of types by their names. They refer to each other.
type schemas map[string]apiextensionsv1.JSONSchemaProps

// foreignTypes are types of Kubernetes' own by their names, in the form in which a
// CustomResourceDefinition has them.
var foreignTypes = map[string]apiextensionsv1.JSONSchemaProps{
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {Type: "object"},
	"io.k8s.apimachinery.pkg.apis.meta.v1.Condition":  {Type: "object"},
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":       {Type: "string", Format: "date-time"},
	"io.k8s.apimachinery.pkg.api.resource.Quantity":   {XIntOrString: true},
}

// resolved returns a schema with what it refers to in place of the references, and
// without the defaults that only say that a field is empty.
func (s schemas) resolved(in apiextensionsv1.JSONSchemaProps) (apiextensionsv1.JSONSchemaProps, error) {
	out := in
	if in.Ref != nil {
		name := strings.TrimPrefix(*in.Ref, definitions)
		definition, known := s[name]
		if foreign, is := foreignTypes[name]; is {
			definition, known = foreign, true
		}
		if !known {
			return out, fmt.Errorf("no schema of %s", name)
		}
		out = definition
		if in.Description != "" {
			out.Description = in.Description
		}
	}
	if out.Default != nil && slices.Contains([]string{`{}`, `""`, "0", "false", "null"}, string(out.Default.Raw)) {
		out.Default = nil
	}
	properties := out.Properties
	out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	for name, property := range properties {
		var err error
		if out.Properties[name], err = s.resolved(property); err != nil {
			return out, err
		}
	}
	if out.Items != nil && out.Items.Schema != nil {
		items, err := s.resolved(*out.Items.Schema)
		if err != nil {
			return out, err
		}
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil {
		values, err := s.resolved(*out.AdditionalProperties.Schema)
		if err != nil {
			return out, err
		}
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
	}
	return out, nil
}
