package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/version"
)

const crdFile = "manifests/operator/crd/operator.clusterregistry.io_clusterregistries.yaml"

// writeRule adds the rules that follow from the releases to the definition, which
// controller-gen has just written: the one about changes of the version, and one for
// each function of the controller. They compare with what runs, in the status, and with
// the version, and so belong to the whole object, on which no marker with a generated
// text can be.
func writeRule(releases []version.Release) error {
	content, err := os.ReadFile(crdFile)
	if err != nil {
		return err
	}
	if content, err = withRule(content, releases); err != nil {
		return err
	}
	if content, err = withoutForeign(content); err != nil {
		return err
	}
	if err := fits(content); err != nil {
		return err
	}
	return os.WriteFile(crdFile, content, 0o644)
}

// maxApplied leaves room below the 256 KiB that all annotations of an object may have: "kubectl
// apply" keeps the whole definition in one, and tools that deliver it have others.
const maxApplied = 240_000

// fits refuses a definition that client-side apply would soon be unable to store.
func fits(content []byte) error {
	applied, err := yaml.YAMLToJSON(content)
	if err == nil && len(applied) > maxApplied {
		err = fmt.Errorf("%s has %d bytes as client-side apply stores it, more than %d: shorten descriptions and rules, or have apis/operator refer from descriptions to docs", crdFile, len(applied), maxApplied)
	}
	return err
}

// elsewhere is what the description of a field of one of Kubernetes' own types says: there its
// fields are described, which would be half of the definition with each of its components.
const elsewhere = `see "kubectl explain pod.`

// withoutForeign returns a definition, in YAML, without descriptions within fields of Kubernetes'
// own types.
func withoutForeign(content []byte) ([]byte, error) {
	crd := map[string]any{}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return nil, err
	}
	shorten(crd, false)
	content, err := yaml.Marshal(crd)
	return append([]byte("---\n"), content...), err
}

// shorten removes descriptions from a tree of schemas: all of them within a field whose own says
// that they are elsewhere.
func shorten(tree any, within bool) {
	switch node := tree.(type) {
	case map[string]any:
		description, _ := node["description"].(string)
		if within && description != "" {
			delete(node, "description")
		}
		within = within || strings.Contains(strings.Join(strings.Fields(description), " "), elsewhere)
		for _, value := range node {
			shorten(value, within)
		}
	case []any:
		for _, value := range node {
			shorten(value, within)
		}
	}
}

// withRule returns a definition, in YAML, with the rules that follow from the releases.
func withRule(content []byte, releases []version.Release) ([]byte, error) {
	crd := map[string]any{}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return nil, err
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || len(versions) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s has %d versions, want 1", crdFile, len(versions)))
	}
	schema := []string{"schema", "openAPIV3Schema", "x-kubernetes-validations"}
	served := versions[0].(map[string]any)
	rules, _, err := unstructured.NestedSlice(served, schema...)
	if err != nil {
		return nil, err
	}
	added, err := rule(releases)
	if err != nil {
		return nil, err
	}
	rules = append(rules, map[string]any{"rule": added.Rule, "messageExpression": added.MessageExpression, "message": added.Message, "fieldPath": added.FieldPath})
	if err := unstructured.SetNestedSlice(served, rules, schema...); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		return nil, err
	}
	if content, err = yaml.Marshal(crd); err != nil {
		return nil, err
	}
	return append([]byte("---\n"), content...), nil
}

// running and wanted are what the rule compares.
const (
	running = "self.status.version"
	wanted  = "self.spec.version"
)

// rule allows only those changes of spec.version that can be made from what runs, and
// says of others what the operator would hold them with. During an upgrade both of
// its ends are fine, and what runs from a newer operator is for the operator to
// judge. It lists the steps that are allowed, and so grows with the releases, not
// with their square: the way over several releases is not listed. The newest step
// that is older than the wanted release is the first of it.
func rule(releases []version.Release) (*apiextensionsv1.ValidationRule, error) {
	var positions, entries, firsts []string
	for i, r := range releases {
		steps := allowed(releases, r.Version)
		if err := firstStepsLead(releases, r.Version, steps); err != nil {
			return nil, err
		}
		positions = append(positions, fmt.Sprintf("'%s': %d", r.Version, i))
		entries = append(entries, fmt.Sprintf("'%s': ['%s']", r.Version, strings.Join(steps, "', '")))
		firsts = append(firsts, fmt.Sprintf("'%s': %s", r.Version, firstStep(releases, steps)))
	}
	position, steps, first := "{"+strings.Join(positions, ", ")+"}", "{"+strings.Join(entries, ", ")+"}", "{"+strings.Join(firsts, ", ")+"}"
	return &apiextensionsv1.ValidationRule{
		Rule: wanted + " == oldSelf.spec.version || !has(self.status) || !has(" + running + ")" +
			" || has(self.status.operation) && has(self.status.operation.from) && has(self.status.operation.to) && " + wanted + " in [self.status.operation.from, self.status.operation.to]" +
			" || !(" + running + " in " + position + ")" +
			" || " + wanted + " in " + steps + "[" + running + "]",
		// The language has no variables: lists of one element take their place.
		MessageExpression: "[" + position + "[" + wanted + "]].map(to, to < " + position + "[" + running + "]" +
			" ? " + running + " + ' -> ' + " + wanted + " + ' is a downgrade, which is not possible: set spec.version back to ' + " + running +
			" : [" + first + "[" + running + "]].map(first, first == " + running +
			" ? 'no upgrade leads from ' + first + ', which runs, to ' + " + wanted + " + ': set spec.version back to ' + first" +
			" : " + running + " + ' -> ' + " + wanted + " + ' skips ' + first + '; set spec.version to ' + first + ' first')[0])[0]",
		Message:   "the running version, in status.version, can't be brought to this one",
		FieldPath: ".spec.version",
	}, nil
}

// firstStep returns an expression for the newest of some steps that is older than the
// release whose position is to. Else it is the last, which is no step.
func firstStep(releases []version.Release, steps []string) string {
	out := ""
	for _, step := range steps[:len(steps)-1] {
		out += fmt.Sprintf("to > %d ? '%s' : ", position(releases, step), step)
	}
	return out + "'" + steps[len(steps)-1] + "'"
}

// position returns where in the table a release is.
func position(releases []version.Release, v string) int {
	return slices.IndexFunc(releases, func(r version.Release) bool { return r.Version == v })
}

// allowed returns what spec.version may be changed to while a release runs, the
// newest first and the release itself last.
func allowed(releases []version.Release, from string) []string {
	var out []string
	for _, r := range releases {
		if version.CheckUpgrade(releases, from, r.Version) == nil {
			out = append(out, r.Version)
		}
	}
	slices.Reverse(out)
	return out
}

// firstStepsLead returns an error when the rule would send someone on a way that
// leads nowhere: when the newest allowed step that is older than a release is not the
// first of an upgrade to it, or when there is one and the rule sees none.
func firstStepsLead(releases []version.Release, from string, steps []string) error {
	for i, to := range releases {
		if i <= position(releases, from) || slices.Contains(steps, to.Version) {
			continue
		}
		first := steps[slices.IndexFunc(steps, func(step string) bool { return position(releases, step) < i })]
		leads := first != from && len(version.Path(releases, first, to.Version)) > 0
		if exists := len(version.Path(releases, from, to.Version)) > 0; leads != exists {
			return fmt.Errorf("operator/version/releases.yaml: on the way from %s to %s, %s would be named first, and leads nowhere: let upgradesFrom of a later release name it", from, to.Version, first)
		}
	}
	return nil
}
