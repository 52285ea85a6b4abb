package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/version"
)

const crdFile = "manifests/operator/crd/operator.clusterregistry.io_clusterregistries.yaml"

// writeRule adds the rule about changes of the version to the definition, which
// controller-gen has just written. It compares with what runs, in the status, and
// so belongs to the whole object, on which no marker with a generated text can be.
func writeRule(releases []version.Release) error {
	content, err := os.ReadFile(crdFile)
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || len(versions) != 1 {
		return errors.Join(err, fmt.Errorf("%s has %d versions, want 1", crdFile, len(versions)))
	}
	schema := []string{"schema", "openAPIV3Schema", "x-kubernetes-validations"}
	served := versions[0].(map[string]any)
	rules, _, err := unstructured.NestedSlice(served, schema...)
	if err != nil {
		return err
	}
	added := rule(releases)
	if added == nil {
		return nil
	}
	rules = append(rules, map[string]any{"rule": added.Rule, "messageExpression": added.MessageExpression, "message": added.Message, "fieldPath": added.FieldPath})
	if err := unstructured.SetNestedSlice(served, rules, schema...); err != nil {
		return err
	}
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		return err
	}
	if content, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(crdFile, append([]byte("---\n"), content...), 0o644)
}

// rule refuses a change of spec.version that can't be made from what runs, in the
// words that the operator would hold it with. During an upgrade both of its ends
// are fine, and what runs from a newer operator is for the operator to judge. It
// is nil when there is nothing to refuse.
func rule(releases []version.Release) *apiextensionsv1.ValidationRule {
	var refused, sentences []string
	for _, running := range releases {
		for _, wanted := range releases {
			if err := version.CheckUpgrade(releases, running.Version, wanted.Version); err != nil {
				pair := fmt.Sprintf("'%s to %s'", running.Version, wanted.Version)
				refused = append(refused, pair)
				sentences = append(sentences, pair+": '"+strings.ReplaceAll(err.Error(), "'", "\\'")+"'")
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	const pair = "self.status.version + ' to ' + self.spec.version"
	return &apiextensionsv1.ValidationRule{
		Rule: "self.spec.version == oldSelf.spec.version || !has(self.status) || !has(self.status.version)" +
			" || has(self.status.operation) && has(self.status.operation.from) && has(self.status.operation.to) && self.spec.version in [self.status.operation.from, self.status.operation.to]" +
			" || !(" + pair + " in [" + strings.Join(refused, ", ") + "])",
		MessageExpression: "{" + strings.Join(sentences, ", ") + "}[" + pair + "]",
		Message:           "the running version, in status.version, can't be brought to this one",
		FieldPath:         ".spec.version",
	}
}
