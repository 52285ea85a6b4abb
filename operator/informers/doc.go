// Package informers says what the operator watches, and how little of it is held in
// memory: which kinds (kinds.go), which of their objects (options.go) and what of each
// object (strip.go). The reconciler watches the kinds, and may read no field through
// the cache that is not kept here.
package informers
