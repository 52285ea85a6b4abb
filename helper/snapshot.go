package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/helper/snapshot"
)

// snapshots returns the commands of the Job that saves what etcd holds before
// an upgrade.
func snapshots() *cobra.Command {
	cmd := &cobra.Command{Use: "snapshot", Short: "Save what etcd holds", Args: cobra.NoArgs}
	cmd.AddCommand(save(), keep())
	return cmd
}

func save() *cobra.Command {
	var etcd snapshot.Etcd
	var dir, name, report string
	cmd := &cobra.Command{
		Use:   "save",
		Short: "Save a snapshot, unless a whole one of that name is there, if the members hold the same data, and report what it is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			saved, err := snapshot.SaveCompared(cmd.Context(), etcd, dir, name)
			if err != nil {
				return err
			}
			line, err := json.Marshal(saved)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), string(line))
			if err := os.WriteFile(report, append(line, '\n'), 0o644); err != nil {
				return fmt.Errorf("report the snapshot %s: %w", name, err)
			}
			return nil
		},
	}
	command.Etcd(cmd, &etcd)
	cmd.Flags().StringVar(&report, "report", "/dev/termination-log", "file for the report, a line of JSON")
	command.RequireTexts(cmd, []command.Text{
		{Target: &dir, Name: "dir", Usage: "directory for snapshots"},
		{Target: &name, Name: "name", Usage: "name of the snapshot"},
	})
	return cmd
}

func keep() *cobra.Command {
	var dir, name string
	var last int
	cmd := &cobra.Command{
		Use:   "keep",
		Short: "Record that a snapshot is verified, and remove all but the last verified ones",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := snapshot.Keep(dir, name, last)
			for _, old := range removed {
				fmt.Fprintf(cmd.OutOrStdout(), "removed the snapshot %s\n", old)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&last, "last", 3, "how many verified snapshots to keep, the one just verified included")
	command.RequireTexts(cmd, []command.Text{
		{Target: &dir, Name: "dir", Usage: "directory of the snapshots"},
		{Target: &name, Name: "name", Usage: "name of the snapshot that was just restored"},
	})
	return cmd
}
