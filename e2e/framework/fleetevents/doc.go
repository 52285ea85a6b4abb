// Package fleetevents runs provider/examples/fleet-events, a program on informers, beside
// clients that write clusters, and compares what it says with what was written.
//
// What is compared: the program says of each cluster, by name and UID, exactly once that it
// was added and exactly once that it was removed, if it was; between the two, never twice the
// same resourceVersion; and in the end what it has said amounts to what the registry lists,
// cluster by cluster, with UID and resourceVersion. An informer may leave out a change that
// is followed by another one before it has reached the registry again, and a cluster that was
// added and removed meanwhile: the writers keep each for some seconds, so that none is.
//
// A restore goes back to an earlier state. Of it the program is to say the difference: what
// the backup doesn't have is removed, what it has is added, what has another resourceVersion
// there is changed, each once, and nothing is said of the rest.
package fleetevents
