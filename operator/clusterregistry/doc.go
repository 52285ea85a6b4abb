// Package clusterregistry drives each ClusterRegistry toward its spec.
//
// reconcile.go is the way through: observe (scope.go), plan (plan.go), render,
// the stages (certificates.go, etcd.go, server.go, then apiservice.go or
// endpoint.go), a read as clients do (available.go), report (report.go). delete.go takes a registry down. A stage returns what
// it found as a value (operator/verdict), which becomes a condition and says whether the
// next one follows; watches (setup.go) do the waking. What its
// message says of a pod, a Job or a Certificate that is not ready comes from
// operator/diagnose.
package clusterregistry
