package main

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterregistry/operator/operator/version"
)

// functionRules refuses to turn a function of spec.controllers on below the first
// release that has it. An object that has the function already may go back to an older
// release, since a return to what runs is always allowed: the condition ControllerReady
// says then that the function does not run. The rules list the releases that lack the
// function, and so do not grow with those to come.
func functionRules(releases []version.Release) []apiextensionsv1.ValidationRule {
	var out []apiextensionsv1.ValidationRule
	for _, function := range functions(releases) {
		first := version.FirstWith(releases, function)
		var lacking []string
		for _, r := range releases {
			if !r.Controls(function) {
				lacking = append(lacking, r.Version)
			}
		}
		if len(lacking) == 0 {
			continue
		}
		set := func(spec string) string {
			return fmt.Sprintf("has(%s.controllers) && has(%s.controllers.%s)", spec, spec, function)
		}
		out = append(out, apiextensionsv1.ValidationRule{
			Rule:            fmt.Sprintf("!(%s) || !(%s in ['%s']) || oldSelf.hasValue() && %s", set("self.spec"), wanted, strings.Join(lacking, "', '"), set("oldSelf.value().spec")),
			Message:         fmt.Sprintf("controllers.%s needs %s or later: set spec.version to such a release first, or remove controllers.%s", function, first, function),
			FieldPath:       ".spec.controllers",
			OptionalOldSelf: new(true),
		})
	}
	return out
}

// functions are those that any release has, in the order in which they came.
func functions(releases []version.Release) []string {
	var out []string
	for _, r := range releases {
		for _, function := range r.Controllers {
			if !slices.Contains(out, function) {
				out = append(out, function)
			}
		}
	}
	return out
}
