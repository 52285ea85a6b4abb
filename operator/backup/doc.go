// Package backup decides what is to be done about the backups of one registry: which
// ClusterRegistryBackup is next, what its Job is to do, what a Job that ended means, which
// objects may go, and what there is to report. Nothing in it writes or reads: what it decides
// on is given, the time, too. A Job may be killed, doubled or begun again at any point, since
// what the helper does is the same when it is done twice; and every phase is in the status of
// an object before its Job is made.
package backup
