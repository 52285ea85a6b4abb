// Package export publishes the clusters of a registry as objects in namespaces of the host
// cluster, for programs that read those. What an object has is for its format to say, and
// whether, when and where it is written for this package, which knows no format.
//
// An object is written when the content that follows from the entry changes, once in [Period] at
// most, and never on a heartbeat: consumers connect again at each event. An object belongs here
// by what its format marks it with; any other one is neither changed nor deleted.
//
// Nothing is written into a namespace that lacks the label by which an administrator has
// opened it to the registry, no one is led to an endpoint that was not verified, and nothing is
// deleted because the registry was not read: see [Controller] and the deletions that are held.
package export
