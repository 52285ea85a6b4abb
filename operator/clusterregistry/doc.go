// Package clusterregistry drives each ClusterRegistry toward its spec.
//
// reconcile.go is the way through: observe (scope.go), plan (plan.go), render,
// the stages (certificates.go, etcd.go, server.go, then apiservice.go or
// endpoint.go), report (report.go). delete.go is the way back. A stage that has
// to wait returns a hold (hold.go), which becomes a condition; watches (setup.go)
// do the waking.
package clusterregistry
