// Package backup has the e2e tests of backups: taken by the schedule and by hand, to a
// store with the API of S3 in the cluster, while clients write; with a store that fails,
// and with a namespace that is deleted meanwhile; with kubectl registry, and as the last thing
// that is done about a registry.
package backup
