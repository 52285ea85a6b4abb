// Command reference writes the references of both APIs: of ClusterRegistry, ClusterRegistryBackup
// and ClusterSelection from the generated CustomResourceDefinitions, and of the kinds of the registry itself from the
// schema that the server publishes. Descriptions, defaults and rules are those of the Go types.
package main

import (
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	crdFile       = "manifests/operator/crd/operator.clusterregistry.io_clusterregistries.yaml"
	referenceFile = "docs/reference/clusterregistry.md"

	backupCRDFile       = "manifests/operator/crd/operator.clusterregistry.io_clusterregistrybackups.yaml"
	backupReferenceFile = "docs/reference/clusterregistrybackup.md"

	selectionCRDFile       = "manifests/operator/crd/operator.clusterregistry.io_clusterselections.yaml"
	selectionReferenceFile = "docs/reference/clusterselection.md"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	for crd, file := range map[string]string{crdFile: referenceFile, backupCRDFile: backupReferenceFile, selectionCRDFile: selectionReferenceFile} {
		text, err := reference(crd)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, of := range pages {
		text, err := pageOf(schemaFile, of)
		if err != nil {
			return err
		}
		if err := os.WriteFile(of.file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// reference returns the document about the definition in a file.
func reference(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if len(crd.Spec.Versions) != 1 {
		return "", fmt.Errorf("%s has %d versions, want 1", file, len(crd.Spec.Versions))
	}
	return document(crd), nil
}
