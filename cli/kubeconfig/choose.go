package kubeconfig

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

// entries returns the entries of clusters, and those that get none.
func (b *builder) entries(clusters []v1beta1.Cluster, client netip.Addr) (entries []entry, refused []refusal) {
	for i := range clusters {
		made, err := newEntry(&clusters[i], b.prefix, client, b.allowExec)
		if err != nil {
			refused = append(refused, refusal{clusters[i].Name, err.Error()})
			continue
		}
		entries = append(entries, made)
	}
	return entries, refused
}

// check returns the client's address, or what is wrong with the command line.
func (b *builder) check() (netip.Addr, error) {
	if err := b.dryRun.ValidateLocal(); err != nil {
		return netip.Addr{}, err
	}
	chosen := 0
	for _, is := range []bool{len(b.names) > 0, b.selector != "", b.all} {
		if is {
			chosen++
		}
	}
	if chosen != 1 {
		return netip.Addr{}, command.Usagef("choose clusters by name, with --selector or with --all, and in one way only")
	}
	for _, name := range b.names {
		if b.merge == defaultFile && strings.ContainsAny(name, `/\`) {
			return netip.Addr{}, command.Usagef("%s is taken for the name of a cluster: to merge into a file of this name, write --merge=%s", command.Plain(name), command.Plain(name))
		}
	}
	for _, known := range plugins {
		if slices.Contains(b.allowExec, known.command) {
			fmt.Fprintf(b.env.ErrOut, "note: --allow-exec=%s lets entries run %s with any arguments, and not only as a plugin: read each one\n", known.command, known.command)
		}
	}
	if b.client == "" {
		return netip.Addr{}, nil
	}
	client, err := netip.ParseAddr(b.client)
	if err != nil {
		return netip.Addr{}, command.Usagef("--for=%s is not an IP address: name the one that you reach clusters from, such as 10.1.2.3", command.Plain(b.client))
	}
	return client, nil
}

// list returns the chosen clusters, and whether they are all that the choice can have.
func (b *builder) list(ctx context.Context) ([]v1beta1.Cluster, bool, error) {
	registry, err := b.env.Registry()
	if err != nil {
		return nil, false, err
	}
	stop := b.env.Progress(ctx, "Reading the registry's clusters")
	defer stop()
	clusters := registry.ClusterregistryV1beta1().Clusters()
	if len(b.names) == 0 {
		list, err := clusters.List(ctx, metav1.ListOptions{LabelSelector: b.selector})
		if err != nil {
			return nil, false, b.env.Explain("list the clusters", command.OfRegistry, err)
		}
		return list.Items, list.Continue == "", nil
	}
	var out []v1beta1.Cluster
	names := slices.Clone(b.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && b.merge == defaultFile {
			err = fmt.Errorf("%w; if that is the file to merge into, write --merge=%s", err, command.Plain(name))
		}
		if err != nil {
			return nil, false, b.env.Explain("read the cluster "+command.Plain(name), command.OfRegistry, err)
		}
		out = append(out, *cluster)
	}
	return out, false, nil
}
