package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/internal/memlimit"
)

// etcdGuard returns the command that every etcd member is started by: it checks,
// and takes on the member's program in its place. kubelet restarts a container
// without its Pod's init containers, and so the check must be in the container.
func etcdGuard() *cobra.Command {
	var member guard.Member
	cmd := &cobra.Command{
		Use:   "etcd-guard [flags] [-- PROGRAM [ARGUMENT...]]",
		Short: "Fail unless etcd may start on the data that it would find; else become PROGRAM, if one is named",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, program []string) error {
			passed := guard.Passed{State: os.Getenv(guard.StateVariable), Joining: os.Getenv(guard.JoiningVariable)}
			start, err := guard.Check(cmd.Context(), member, passed)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), start.Found)
			if len(program) == 0 {
				return nil
			}
			if err := tell(start); err != nil {
				return err
			}
			if err := limitMemory(memlimit.Share(etcdMemory)); err != nil {
				return err
			}
			return fmt.Errorf("start %s: %w", program[0], syscall.Exec(program[0], program, os.Environ()))
		},
	}
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
