// Package simulation has a model of a host cluster in which the whole operator runs: its
// Reconciler, as it is, against an API server whose watches are late and whose answers get lost,
// with the controllers, kubelets, etcd members, volumes and cert-manager that act on what it
// writes. Time is virtual, and everything that happens by chance does so by a seed: one seed is
// one life of a registry, whatever else the computer does.
//
// The model says what must be true at any moment, and that a registry comes to rest.
package simulation
