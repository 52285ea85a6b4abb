package main

import (
	"fmt"
	"go/ast"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// descriptor is the marker of a field that consoles show, in the form that
// operator-sdk defines:
//
//	+operator-sdk:csv:customresourcedefinitions:displayName="Version",xDescriptors={"urn:alm:descriptor:text"}
type descriptor struct {
	DisplayName  string
	XDescriptors []string `marker:",optional"`
}

const marker = "operator-sdk:csv:customresourcedefinitions"

// describe adds the fields of a package's root type that carry the marker.
func describe(dir string, owned *operatorsv1alpha1.CRDDescription) error {
	roots, err := loader.LoadRootsWithConfig(&packages.Config{Dir: dir}, ".")
	if err != nil {
		return fmt.Errorf("load %s: %w", dir, err)
	}
	registry := &markers.Registry{}
	definition, err := markers.MakeDefinition(marker, markers.DescribesField, descriptor{})
	if err != nil {
		return err
	}
	if err := registry.Register(definition); err != nil {
		return err
	}
	w := walk{types: map[string]*markers.TypeInfo{}}
	collector := &markers.Collector{Registry: registry}
	if err := markers.EachType(collector, roots[0], func(info *markers.TypeInfo) { w.types[info.Name] = info }); err != nil {
		return err
	}
	w.visit(owned.Kind+"Spec", "", func(path, doc string, d descriptor) {
		owned.SpecDescriptors = append(owned.SpecDescriptors, operatorsv1alpha1.SpecDescriptor{Path: path, DisplayName: d.DisplayName, Description: doc, XDescriptors: d.XDescriptors})
	})
	w.visit(owned.Kind+"Status", "", func(path, doc string, d descriptor) {
		owned.StatusDescriptors = append(owned.StatusDescriptors, operatorsv1alpha1.StatusDescriptor{Path: path, DisplayName: d.DisplayName, Description: doc, XDescriptors: d.XDescriptors})
	})
	return nil
}

// walk goes through the fields of a package's types.
type walk struct{ types map[string]*markers.TypeInfo }

// visit calls found for each field below a type that carries the marker, with its
// path and documentation. Items of lists have no path of their own.
func (w walk) visit(name, prefix string, found func(path, doc string, d descriptor)) {
	info := w.types[name]
	if info == nil {
		return
	}
	for _, field := range info.Fields {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		path := prefix + tag
		if d, ok := field.Markers.Get(marker).(descriptor); ok {
			found(path, field.Doc, d)
		}
		inside := path + "."
		if strings.Contains(options, "inline") {
			inside = prefix
		}
		w.visit(typeName(field.RawField.Type), inside, found)
	}
}

// typeName returns the name of a type of the same package, or of what a pointer
// leads to, and "" for others.
func typeName(expression ast.Expr) string {
	if pointer, ok := expression.(*ast.StarExpr); ok {
		expression = pointer.X
	}
	if identifier, ok := expression.(*ast.Ident); ok {
		return identifier.Name
	}
	return ""
}
