// Command clusterregistry-backup keeps backups of what a registry's etcd holds in a store:
// in S3, Google Cloud Storage, Azure Blob Storage or a directory. Jobs run it. It is the
// only program that links the SDKs of clouds.
package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/helper/backup/archive"
	"github.com/clusterregistry/operator/helper/backup/store"
	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/memlimit"
)

func main() {
	begun := time.Now()
	memlimit.Apply()
	cmd := command.Program("clusterregistry-backup", "Keep backups of what a registry's etcd holds in a store", commands()...)
	code := command.Run(cmd, exitCode)
	if code == 0 { // the error is the end of the log, which is told from there
		command.Usage(os.Stderr, begun)
	}
	os.Exit(code)
}

func commands() []*cobra.Command {
	return []*cobra.Command{check(), save(), verify(), list(), prune(), remove(), show(), fetch()}
}

// exitCode returns the code by which the operator knows that a backup can't be used, or that the
// store can't be reached.
func exitCode(err error) int {
	switch {
	case errors.As(err, new(*archive.DamagedError)):
		return contract.BackupDamaged
	case errors.Is(err, store.ErrUnreachable):
		return contract.StoreUnreachable
	}
	return 1
}
