package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/helper/restore"
)

// etcdRestore returns the command of the init container in which a member restores a backup.
func etcdRestore() *cobra.Command {
	var r restore.Restore
	cmd := &cobra.Command{
		Use:   "etcd-restore",
		Short: "Make a snapshot the data of an etcd member that has none, if that is recorded",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := r.Run(cmd.Context(), os.Getenv(restore.Variable))
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), done)
			return nil
		},
	}
	cmd.Flags().StringVar(&r.Etcdutl, "etcdutl", "/usr/local/bin/etcdutl", "the program etcdutl")
	command.RequireTexts(cmd, []command.Text{
		{Target: &r.ID, Name: "restore", Usage: "ID of the restore, which must be recorded"},
		{Target: &r.Member, Name: "member", Usage: "name of the member, which is that of its Pod"},
		{Target: &r.PeerURL, Name: "peer-url", Usage: "URL of a member for other members, with {member} in place of its name"},
		{Target: &r.DataDir, Name: "data-dir", Usage: "etcd's own --data-dir"},
		{Target: &r.SideDir, Name: "side-dir", Usage: "directory on the same volume, with the snapshot in snapshot.db"},
		{Target: &r.SHA256, Name: "sha256", Usage: "checksum of the snapshot, in hexadecimal"},
		{Target: &r.IdentityDir, Name: "identity-dir", Usage: "directory of the mounted ConfigMap that records who etcd is"},
	})
	return cmd
}
