// Package clusterregistry drives each ClusterRegistry toward its spec: it is the way
// through, and what happens on it is in the packages that it stands on.
//
// reconcile.go is the order: observe (scope.go), plan (operator/operation/upgrade), render, the
// stages (stages.go, which says what each one is given and leaves), the long operations
// (operate.go, which says the same of them), a read as clients do (operator/available), report
// (report.go, conditions.go). delete.go takes a registry down (operator/removal). A stage (operator/stage) returns
// what it found as a value with a verdict (operator/verdict), which becomes a condition and says
// whether the next one follows; watches (setup.go) do the waking.
package clusterregistry
