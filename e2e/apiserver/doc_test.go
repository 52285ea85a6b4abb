// Package apiserver tells the story of the registry's API server in a real
// cluster, installed by hand from plain manifests: what the operator is to do
// must be possible first.
package apiserver
