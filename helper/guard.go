package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/helper/recovery"
	"github.com/clusterregistry/operator/internal/memlimit"
)

// etcdGuard returns the command that every etcd member is started by: it checks,
// and takes on the member's program in its place. kubelet restarts a container
// without its Pod's init containers, and so the check must be in the container.
func etcdGuard() *cobra.Command {
	var member guard.Member
	var etcdutl string
	cmd := &cobra.Command{
		Use:   "etcd-guard [flags] [-- PROGRAM [ARGUMENT...]]",
		Short: "Fail unless etcd may start on the data that it would find; else become PROGRAM, if one is named",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, program []string) error {
			if err := limitMemory(memlimit.Share(etcdMemory)); err != nil { // of the program, and of those that recover data
				return err
			}
			passed := guard.Passed{State: os.Getenv(guard.StateVariable), Joining: os.Getenv(guard.JoiningVariable), Recovery: os.Getenv(guard.RecoveryVariable)}
			if err := recoverData(cmd, member, passed, etcdutl, program); err != nil {
				return err
			}
			start, err := guard.Check(cmd.Context(), member, passed)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), start.Found)
			if start.Settled {
				clean(cmd, member.DataDir)
			}
			if len(program) == 0 {
				return nil
			}
			if err := tell(start); err != nil {
				return err
			}
			return fmt.Errorf("start %s: %w", program[0], syscall.Exec(program[0], program, os.Environ()))
		},
	}
	cmd.Flags().StringVar(&etcdutl, "etcdutl", "/usr/local/bin/etcdutl", "the program etcdutl, by which a lost quorum is recovered with the member's data")
	command.RequireTexts(cmd, []command.Text{
		{Target: &member.DataDir, Name: "data-dir", Usage: "etcd's own --data-dir"},
		{Target: &member.IdentityDir, Name: "identity-dir", Usage: "directory of the mounted ConfigMap that records which cluster and member the data belongs to"},
		{Target: &member.Name, Name: "member", Usage: "name of the member, which is that of its Pod"},
		{Target: &member.Cluster.PeerURL, Name: "peer-url", Usage: "URL of a member for other members, with {member} in place of its name"},
		{Target: &member.Cluster.ClientURL, Name: "client-url", Usage: "URL of a member for clients, with {member} in place of its name"},
		{Target: &member.Cluster.CA, Name: "cacert", Usage: "file with the CA that signs the members' certificates"},
		{Target: &member.Cluster.Cert, Name: "cert", Usage: "file with a certificate by which members let clients in; one that joins asks them whether it may"},
		{Target: &member.Cluster.Key, Name: "key", Usage: "file with its key"},
	})
	return cmd
}

// recoverData makes the member's data that of a new etcd where a lost quorum is to be recovered
// with it, and puts back what such a recovery had moved aside when it was interrupted.
func recoverData(cmd *cobra.Command, member guard.Member, passed guard.Passed, etcdutl string, program []string) error {
	undone, err := recovery.Undo(member.DataDir)
	if err != nil {
		return err
	}
	if undone != "" {
		fmt.Fprintln(cmd.OutOrStdout(), undone)
	}
	found, err := guard.Recovery(member, passed)
	if err != nil || found == nil {
		return err
	}
	if len(program) == 0 {
		return fmt.Errorf("a lost quorum is to be recovered with the data of etcd member %s, for which this command needs etcd as PROGRAM", member.Name)
	}
	r := recovery.Recovery{Recovery: *found, DataDir: member.DataDir, PeerURL: member.Cluster.PeerURL, Etcd: program[0], Etcdutl: etcdutl, Out: cmd.OutOrStdout()}
	return r.Run(cmd.Context())
}

// clean removes what recoveries have left. It takes no more than space, which keeps no member
// from starting.
func clean(cmd *cobra.Command, dataDir string) {
	removed, err := recovery.Clean(dataDir)
	for _, path := range removed {
		fmt.Fprintln(cmd.OutOrStdout(), "removed", path+", which a recovery has left")
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "what a recovery has left can't be removed:", err)
	}
}

// tell has etcd told what was checked, and with which members it begins.
func tell(start guard.Start) error {
	if err := os.Setenv(guard.StateVariable, start.State); err != nil {
		return err
	}
	if start.InitialCluster == "" {
		// With data, etcd goes by that. Empty would not be a list of members.
		return os.Unsetenv(guard.InitialClusterVariable)
	}
	return os.Setenv(guard.InitialClusterVariable, start.InitialCluster)
}

// etcdMemory is how much of the container's memory Go may use in etcd, in percent.
// It is less than in other programs: etcd maps its database into memory, which Go
// doesn't count. These pages never have a container killed, since the kernel can drop
// them, but without room for them every read goes to the disk.
const etcdMemory = 75

// limitMemory tells the Go runtime of the program to become how many bytes it may
// use, unless there is no limit or the environment says what holds.
func limitMemory(limit int64) error {
	if limit == 0 || os.Getenv(memlimit.Variable) != "" {
		return nil
	}
	return os.Setenv(memlimit.Variable, strconv.FormatInt(limit, 10))
}
