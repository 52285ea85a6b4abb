package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// resource is a kind in one version, as it is served. Texts for people are left out.
type resource struct {
	// Scope is Namespaced or Cluster, and Plural the name in paths. The registry's own API,
	// whose schemas don't say it, has neither.
	Scope  string `json:"scope,omitempty"`
	Plural string `json:"plural,omitempty"`
	// Status and Scale are true where there is a subresource of that name.
	Status bool `json:"status,omitempty"`
	Scale  bool `json:"scale,omitempty"`
	// Fields are the paths that field selectors may name.
	Fields []string                         `json:"fields,omitempty"`
	Schema *apiextensionsv1.JSONSchemaProps `json:"schema"`
}

// served returns what a checkout serves, by kind and version such as
// "ClusterRegistry v1alpha1".
func served(checkout string) (map[string]resource, error) {
	out := map[string]resource{}
	files, err := filepath.Glob(filepath.Join(checkout, "manifests/operator/crd/*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := definition(out, content); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	file := filepath.Join(checkout, "apiserver/openapi/testdata/v1beta1.json")
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := models(out, content, "io.k8s.clusterregistry.", "v1beta1"); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

// definition adds the versions that a CustomResourceDefinition serves.
func definition(out map[string]resource, content []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			return fmt.Errorf("version %s has no schema", version.Name)
		}
		r := resource{Scope: string(crd.Spec.Scope), Plural: crd.Spec.Names.Plural + "." + crd.Spec.Group, Schema: plain(version.Schema.OpenAPIV3Schema)}
		if s := version.Subresources; s != nil {
			r.Status, r.Scale = s.Status != nil, s.Scale != nil
		}
		for _, field := range version.SelectableFields {
			r.Fields = append(r.Fields, field.JSONPath)
		}
		out[crd.Spec.Names.Kind+" "+version.Name] = r
	}
	return nil
}

// models adds the kinds of one version of the registry's own API, which are the models with
// metadata that are no lists.
func models(out map[string]resource, content []byte, group, version string) error {
	var all map[string]*apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(content, &all); err != nil {
		return err
	}
	found := 0
	for name, model := range all {
		kind, is := strings.CutPrefix(name, group+version+".")
		if _, object := model.Properties["metadata"]; !is || !object || strings.HasSuffix(kind, "List") {
			continue
		}
		found++
		out[kind+" "+version] = resource{Schema: plain(resolved(model, all))}
	}
	if found == 0 {
		return errors.New("no kind was found")
	}
	return nil
}

// resolved returns a schema with models in place of references. Those of Kubernetes' own, which
// are not among the models, stay.
func resolved(s *apiextensionsv1.JSONSchemaProps, all map[string]*apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := s.DeepCopy()
	if s.Ref != nil {
		if model := all[strings.TrimPrefix(*s.Ref, "#/definitions/")]; model != nil {
			out = resolved(model, all)
			out.Default = s.Default
			return out
		}
	}
	for name, child := range out.Properties {
		out.Properties[name] = *resolved(&child, all)
	}
	if out.Items != nil && out.Items.Schema != nil {
		out.Items.Schema = resolved(out.Items.Schema, all)
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil {
		out.AdditionalProperties.Schema = resolved(out.AdditionalProperties.Schema, all)
	}
	return out
}

// plain returns a schema without texts for people.
func plain(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := s.DeepCopy()
	out.Description, out.Title, out.Example, out.ExternalDocs = "", "", nil, nil
	for name, child := range out.Properties {
		out.Properties[name] = *plain(&child)
	}
	if out.Items != nil && out.Items.Schema != nil {
		out.Items.Schema = plain(out.Items.Schema)
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil {
		out.AdditionalProperties.Schema = plain(out.AdditionalProperties.Schema)
	}
	for i := range out.XValidations {
		out.XValidations[i] = apiextensionsv1.ValidationRule{Rule: out.XValidations[i].Rule, OptionalOldSelf: out.XValidations[i].OptionalOldSelf}
	}
	return out
}

func read(file string) (map[string]resource, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the baseline, which \"make update-schemas\" writes: %w", err)
	}
	var out map[string]resource
	if err := json.Unmarshal(content, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no schemas, so that every change would pass: restore it from the history", file)
	}
	return out, nil
}

func write(file string, all map[string]resource) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
