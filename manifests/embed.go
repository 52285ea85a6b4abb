// Package manifests embeds what the operator installs for a registry. The files
// below registry/ are kustomize bases and components, in a directory for each
// layout; names in angle brackets are replaced by package render after kustomize
// has run.
package manifests

import "embed"

// Registry holds the directory registry: LAYOUT/base, LAYOUT/components and
// LAYOUT/apiservices. A layout that a released release uses never changes.
//
//go:embed registry
var Registry embed.FS
