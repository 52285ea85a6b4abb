// Package olm installs, upgrades and uninstalls the operator with the Operator
// Lifecycle Manager: v0 itself, which runs in the cluster, and what v1 would apply.
// "make e2e-olm" prepares bin/olm and runs it on a cluster of its own, because the
// other stories have the operator from elsewhere.
package olm
