package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/helper/backup/archive"
	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/backup/store"
	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/helper/snapshot"
	"github.com/clusterregistry/operator/internal/contract"
)

// archiveFlags say which lineage of which store is meant.
type archiveFlags struct {
	config          store.Config
	kind            string
	prefix, lineage string
	report          string
}

func (f *archiveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.config.Endpoint, "endpoint", "", "URL of the store, where it is not the cloud's own")
	flags.StringVar(&f.config.Region, "region", "", "region of an S3 bucket")
	flags.StringVar(&f.config.Account, "account", "", "storage account of an Azure container")
	flags.StringVar(&f.config.CAFile, "store-cacert", "", "file with the CAs that the endpoint is trusted by, in place of the system's")
	flags.StringVar(&f.config.Credentials, "credentials", "", "directory of the mounted Secret with the credentials; the platform's workload identity is used without one")
	flags.StringVar(&f.prefix, "prefix", "", "what the keys of all objects in the store begin with")
	flags.StringVar(&f.report, "report", "/dev/termination-log", "file for the report, a line of JSON")
	command.RequireTexts(cmd, []command.Text{
		{Target: &f.kind, Name: "store", Usage: "kind of the store: s3, gcs, azure or directory"},
		{Target: &f.config.Bucket, Name: "bucket", Usage: "bucket, container, or path of the directory"},
		{Target: &f.lineage, Name: "lineage", Usage: "ID of the lineage"},
	})
}

// use opens the store for a command, and reports what that returns.
func (f *archiveFlags) use(do func(ctx context.Context, a archive.Archive) (any, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		l, err := layout.NewLineage(f.prefix, f.lineage)
		if err != nil {
			return err
		}
		f.config.Kind = store.Kind(f.kind)
		s, err := store.Open(cmd.Context(), f.config)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // nothing is left to be written
		found, err := do(cmd.Context(), archive.Archive{Store: s, Lineage: l})
		if err != nil {
			return err
		}
		line, err := json.Marshal(found)
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), string(line))
		if err := os.WriteFile(f.report, append(line, '\n'), 0o644); err != nil {
			return fmt.Errorf("report what was done: %w", err)
		}
		return nil
	}
}

// onArchive returns a command on a lineage. More flags follow.
func onArchive(f *archiveFlags, use, short string, do func(ctx context.Context, a archive.Archive) (any, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: f.use(do)}
	f.add(cmd)
	return cmd
}

func check() *cobra.Command {
	var registry string
	cmd := onArchive(&archiveFlags{}, "check", "Check that a store can be reached, listed and written to", func(ctx context.Context, a archive.Archive) (any, error) {
		return struct{}{}, a.Check(ctx, registry)
	})
	command.RequireTexts(cmd, []command.Text{{Target: &registry, Name: "registry", Usage: "namespace and name of the registry, with a slash between; written to the lineage for people who find it"}})
	return cmd
}

func save() *cobra.Command {
	var etcd snapshot.Etcd
	r := archive.Request{}
	cmd := onArchive(&archiveFlags{}, "save", "Take a backup of etcd, unless it was taken already, and report it", func(ctx context.Context, a archive.Archive) (any, error) {
		return a.Save(ctx, etcd, r)
	})
	command.Etcd(cmd, &etcd)
	cmd.Flags().BoolVar(&r.SkipUnchanged, "skip-unchanged", false, "take none when nothing has changed since the newest backup, and report that one")
	command.RequireTexts(cmd, []command.Text{
		{Target: &r.Name, Name: "name", Usage: "name of the backup"},
		{Target: &r.ID, Name: "id", Usage: "UID of the object that the backup is taken for; one of the same name that was taken for another is an error"},
		{Target: &r.Release, Name: "release", Usage: "release of the registry"},
		{Target: &r.Prefix, Name: "etcd-prefix", Usage: "what the registry's keys in etcd begin with, a slash at the end"},
		{Target: &r.Scratch, Name: "scratch", Usage: "directory with room for a snapshot"},
	})
	return cmd
}

func verify() *cobra.Command {
	var name, prefix string
	var trial snapshot.Trial
	var server archive.Server
	cmd := onArchive(&archiveFlags{}, "verify", "Restore a backup on trial, compare it with what etcd's members had, and record the outcome", func(ctx context.Context, a archive.Archive) (any, error) {
		b, err := a.Verify(ctx, name, prefix, trial, server)
		return a.Report(b), err
	})
	cmd.Flags().StringVar(&trial.Etcd, "etcd", "/usr/local/bin/etcd", "the program etcd")
	cmd.Flags().StringVar(&trial.Etcdutl, "etcdutl", "/usr/local/bin/etcdutl", "the program etcdutl")
	cmd.Flags().StringVar(&server.Program, "server", "", "the program clusterregistry-apiserver of the release in force, which reads what was restored; without it, no server does")
	cmd.Flags().StringVar(&server.Encryption, "encryption-provider-config", "", "the encryption configuration of the servers")
	command.RequireTexts(cmd, []command.Text{
		{Target: &name, Name: "name", Usage: "name of the backup"},
		{Target: &prefix, Name: "etcd-prefix", Usage: "what the registry's keys in etcd begin with, a slash at the end"},
		{Target: &trial.Scratch, Name: "scratch", Usage: "directory with room for two copies of the snapshot"},
	})
	return cmd
}

// most is how many backups a report lists, which has to fit into a termination message.
const most = 5

func list() *cobra.Command {
	return onArchive(&archiveFlags{}, "list", "Report how many backups there are, the newest of them, and which can't be used", func(ctx context.Context, a archive.Archive) (any, error) {
		have, err := a.List(ctx)
		if err != nil {
			return nil, err
		}
		out := contract.BackupList{Count: len(have.Backups)}
		for i, b := range have.Backups {
			if i < most {
				out.Newest = append(out.Newest, a.Report(b))
			}
			out.OldestTime = &have.Backups[i].Time
		}
		for _, u := range have.Unreadable[:min(most, len(have.Unreadable))] {
			out.Unreadable = append(out.Unreadable, u.Name)
		}
		return out, nil
	})
}

func prune() *cobra.Command {
	var keep layout.Retention
	cmd := onArchive(&archiveFlags{}, "prune", "Remove old backups, and what interrupted ones have left", func(ctx context.Context, a archive.Archive) (any, error) {
		const within = 7 * time.Minute // of the ten that its Job has, with the start of its pod
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		removed, err := a.Prune(ctx, keep, time.Now())
		return pruned(removed, err)
	})
	cmd.Flags().IntVar(&keep.KeepLast, "keep-last", 0, "how many backups stay at least; with neither this nor --keep-for, all do")
	cmd.Flags().DurationVar(&keep.KeepFor, "keep-for", 0, "how long each backup stays at least")
	return cmd
}

// pruned is what is reported of old backups: what was removed is, also where others could not be.
func pruned(removed []string, err error) (contract.BackupsRemoved, error) {
	report := contract.BackupsRemoved{Names: removed}
	if err == nil || len(removed) == 0 {
		return report, err
	}
	const longest = 1000 // beside the names, in a termination message
	text := err.Error()
	report.Failure = strings.ToValidUTF8(text[:min(longest, len(text))], "")
	return report, nil
}

func remove() *cobra.Command {
	var name string
	cmd := onArchive(&archiveFlags{}, "delete", "Delete one backup", func(ctx context.Context, a archive.Archive) (any, error) {
		return contract.BackupsRemoved{Names: []string{name}}, a.Delete(ctx, name)
	})
	command.RequireTexts(cmd, []command.Text{{Target: &name, Name: "name", Usage: "name of the backup"}})
	return cmd
}

// choice are the flags that say which backup is meant.
type choice struct{ name, before string }

func (c *choice) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.name, "name", "", "name of the backup; the newest one without it")
	cmd.Flags().StringVar(&c.before, "before", "", "the newest backup from before this time, such as 2026-03-01T03:00:00Z, is meant")
}

// of returns the backup that is meant.
func (c *choice) of(ctx context.Context, a archive.Archive) (archive.Chosen, error) {
	meant := layout.Choice{Name: c.name}
	if c.before != "" {
		at, err := time.Parse(time.RFC3339, c.before)
		if err != nil {
			return archive.Chosen{}, fmt.Errorf("--before is not a time such as 2026-03-01T03:00:00Z: %w", err)
		}
		meant.Before = at
	}
	return a.Choose(ctx, meant)
}

func show() *cobra.Command {
	var c choice
	cmd := onArchive(&archiveFlags{}, "show", "Report what is known of a backup", func(ctx context.Context, a archive.Archive) (any, error) {
		b, err := c.of(ctx, a)
		report := a.Report(b.Backup)
		for _, why := range b.PassedOver[:min(most, len(b.PassedOver))] {
			const longest = 200
			report.PassedOver = append(report.PassedOver, strings.ToValidUTF8(why[:min(longest, len(why))], ""))
		}
		return report, err
	})
	c.add(cmd)
	return cmd
}

func fetch() *cobra.Command {
	var c choice
	var to, sum, unless string
	f := &archiveFlags{}
	cmd := onArchive(f, "fetch", "Write the snapshot of a backup to a file", func(ctx context.Context, a archive.Archive) (any, error) {
		b, err := c.of(ctx, a)
		if err != nil {
			return nil, err
		}
		if sum != "" && b.SHA256 != sum {
			return nil, &archive.DamagedError{Why: fmt.Sprintf("backup %s is another one than was looked up: it has SHA-256 %s, and had %s", b.Name, b.SHA256, sum)}
		}
		// What an earlier run has left was not reported.
		if err := os.Remove(filepath.Clean(to)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return nil, err
		}
		return a.Report(b.Backup), a.Fetch(ctx, b.Backup, to)
	})
	cmd.RunE = unlessData(&unless, cmd.RunE)
	c.add(cmd)
	cmd.Flags().StringVar(&sum, "sha256", "", "checksum that the backup must have, in hexadecimal")
	cmd.Flags().StringVar(&unless, "unless", "", "do nothing when there is a file below this directory: also the store is not opened then")
	command.RequireTexts(cmd, []command.Text{{Target: &to, Name: "to", Usage: "the file"}})
	return cmd
}

// unlessData returns a command that does nothing when a directory has a file.
func unlessData(dir *string, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if *dir != "" {
			has, err := command.HasFile(*dir)
			if err != nil {
				return err
			}
			if has {
				fmt.Fprintf(cmd.OutOrStdout(), "%s has data already: nothing is fetched\n", *dir)
				return nil
			}
		}
		return run(cmd, args)
	}
}
