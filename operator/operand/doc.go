// Package operand reads and writes the objects that one registry consists of, in one
// reconcile: it knows their names and labels, keeps the inventory of them, and makes
// all changes through a writer that can't write once something has made the reconcile
// read-only. What the objects are is decided by operator/render, and what is done with
// them by the stages.
package operand
