// Package integration tests what needs a real kube-apiserver but no nodes, on
// the oldest and the newest host that the project supports.
package integration
