// Package accidents breaks everything that a registry consists of, one object
// after the other, while clients read and write: each is deleted, loses its labels,
// or has its content replaced. After each the registry is Ready again
// automatically, or a condition names the object and says what to do; no
// acknowledged write is lost, and no request fails but where all servers or all of
// etcd went at once.
//
// The objects are those of status.inventory and what controllers make of them, so
// that what a later release consists of is broken, too.
package accidents
