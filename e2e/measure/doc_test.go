// Package measure holds what "make bench-operator" prints: ratios to a peer in the
// same run, and the operator's memory.
package measure
