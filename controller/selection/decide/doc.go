// Package decide decides which clusters a ClusterSelection selects, without I/O: it compiles
// and evaluates the expressions of one within limits of cost, orders the clusters for which
// they hold, and keeps a selection stable while what it follows from fluctuates.
//
// The callers pass in only the clusters that the namespace of a selection may see. Nothing
// here, not even an error message, can then tell of any other one.
package decide
