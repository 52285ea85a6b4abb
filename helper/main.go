// Command clusterregistry-helper does, inside the Pods of a registry, what the
// images of others can't: the etcd image has no shell. Every etcd pod copies it when it
// starts, so it stays small: what keeps backups in a store is a program of its own, in
// directory backup.
package main

import (
	"errors"
	"os"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/helper/recovery"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/memlimit"
)

func main() {
	memlimit.Apply()
	cmd := command.Program("clusterregistry-helper", "Help inside the Pods of a registry", etcdGuard(), etcdRestore(), snapshots())
	os.Exit(command.Run(cmd, exitCode))
}

// exitCode returns the code by which the operator knows why a member does not start.
func exitCode(err error) int {
	var (
		refusal   *guard.Refusal
		undecided *guard.Undecided
	)
	switch {
	case errors.As(err, &undecided) && undecided.Empty:
		return contract.GuardEmpty
	case undecided != nil:
		return contract.GuardWaits
	case errors.As(err, &refusal) && refusal.Lost:
		return contract.GuardRefused
	case refusal != nil:
		return contract.GuardForeign
	case errors.As(err, new(*recovery.Failure)):
		return contract.GuardUnrecovered
	}
	return 1
}
