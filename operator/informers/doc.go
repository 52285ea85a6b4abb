// Package informers says what the operator watches, and how little of it is held in
// memory: which kinds (kinds.go), which of their objects (options.go), what of each
// object (strip.go), and how much of that (bound.go). The reconciler watches the kinds, and
// may read no field through the cache that is not kept here. One object that can't be decoded
// stops nothing else (tolerant.go).
package informers
