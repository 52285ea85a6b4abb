// Package migration has the stored clusters of a registry written again, page by page,
// until none is stored in another version of the API than the one that a release
// stores. It goes by what etcd holds. What else writing a cluster again is good for, its
// renewal, is done in the first walk only, for clients may undo it, and only where it is
// not refused.
package migration
