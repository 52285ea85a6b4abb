// Package manifests embeds what the operator installs for a registry. The files
// below registry/ are kustomize bases and components; names in angle brackets
// are replaced by package render after kustomize has run.
package manifests

import "embed"

// Registry holds the folder registry: base, components and apiservices.
//
//go:embed registry
var Registry embed.FS
