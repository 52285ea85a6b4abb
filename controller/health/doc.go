// Package health reports of every cluster in a registry whether it can be reached and
// is available.
//
// Each cluster is asked once in a period ([schedule]) by package probe. What the
// answers mean is decided by pure functions: [history] counts what came, [evaluate]
// makes conditions of it, [isolated] tells an outage of this side from one of theirs.
// [report] compares that with what the cluster has, and only a difference is written:
// by server-side apply, to the status, with the one entry of status.reporters that is
// this controller's.
package health
