package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apiserver/server"
	"github.com/clusterregistry/operator/internal/contract"
)

// verifying is how long it may take to read an etcd: the storage tries again for as long as
// it is let.
const verifying = 30 * time.Minute

// verifyStorage returns the command that reads an etcd as the server does, such as one that
// a backup was restored to.
func verifyStorage(ctx context.Context) (*cobra.Command, error) {
	options, err := server.NewOptions()
	if err != nil {
		return nil, err
	}
	inClear := false
	cmd := &cobra.Command{
		Use:   "verify-storage",
		Short: "Report whether the server can read all that a registry has in etcd, and fail if it can't; nothing is written to etcd",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The storage logs each value that it can't read.
			klog.SetLogger(logr.Discard())
			defer klog.ClearLogger()
			ctx, cancel := context.WithTimeoutCause(ctx, verifying, fmt.Errorf("etcd was not read within %s", verifying))
			defer cancel()
			found, err := options.VerifyStorage(ctx, inClear)
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			if err != nil {
				return err
			}
			line, err := json.Marshal(found)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), string(line))
			return complaint(found)
		},
	}
	options.AddStorageFlags(cmd.Flags())
	cmd.Flags().BoolVar(&inClear, "read-unencrypted", false, "read values that are not encrypted also where the encryption configuration does not have identity, such as those of a backup from before they were encrypted")
	return cmd, nil
}

// complaint returns why a server can't serve what was found.
func complaint(found contract.Stored) error {
	switch {
	case len(found.MissingKeys) > 0:
		return fmt.Errorf("%d values can't be read, such as that of %s: the encryption configuration has no key that decrypts those which are encrypted with %s", found.Unreadable, found.Examples[0].Key, strings.Join(found.MissingKeys, ", "))
	case found.Unreadable > 0:
		return fmt.Errorf("%d values can't be read, such as that of %s (%s)", found.Unreadable, found.Examples[0].Key, found.Examples[0].Reason)
	case len(found.Unserved) > 0:
		return fmt.Errorf("etcd has keys of resources that this server does not serve: %s", strings.Join(slices.Sorted(maps.Keys(found.Unserved)), ", "))
	}
	return nil
}
