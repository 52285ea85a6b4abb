// Package faults holds the stories of what goes wrong around a registry, and of
// what changes under it, while its clients go on.
package faults
