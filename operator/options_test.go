package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/clusterregistry/operator/operator/render"
)

// TestAggregatedNamespaces reads where registries may be a part of the host's API
// from the environment and the command line, which comes first.
func TestAggregatedNamespaces(t *testing.T) {
	for _, test := range []struct {
		reason, environment string
		args                []string
		want                []string
		refused             string
	}{
		{"nothing says so: nowhere", "", nil, nil, ""},
		{"everywhere", "*", nil, []string{"*"}, ""},
		{"a list, as people write it", "platform, team-a,", nil, []string{"platform", "team-a"}, ""},
		{"the command line comes first", "*", []string{"--aggregated-namespaces=platform"}, []string{"platform"}, ""},
		{"the command line takes it away", "*", []string{"--aggregated-namespaces="}, nil, ""},
		{"a pattern is no name", "team-*", nil, []string{"team-*"}, `has "team-*", which is not the name of a namespace`},
	} {
		t.Setenv("AGGREGATED_NAMESPACES", test.environment)
		t.Setenv("POD_NAMESPACE", "clusterregistry-system")
		o := newOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.aggregated, test.want) {
			t.Errorf("%s: %q, want %q", test.reason, o.aggregated, test.want)
		}
		err := o.validate()
		if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestImageDigests reads from the environment and the command line, which comes first,
// where images have their published digests.
func TestImageDigests(t *testing.T) {
	for _, test := range []struct {
		reason, environment string
		args                []string
		want                render.ImageDigests
		refused             string
	}{
		{"nothing says so: where they are published", "", nil, render.ImageDigestsPublished, ""},
		{"in a mirror, too", "Always", nil, render.ImageDigestsAlways, ""},
		{"the command line comes first", "Always", []string{"--image-digests=Never"}, render.ImageDigestsNever, ""},
		{"neither of the three", "true", nil, "true", `IMAGE_DIGESTS) is "true"; it must be one of [Published Always Never]`},
	} {
		t.Setenv("IMAGE_DIGESTS", test.environment)
		t.Setenv("POD_NAMESPACE", "clusterregistry-system")
		o := newOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if o.environment.ImageDigests != test.want {
			t.Errorf("%s: %q, want %q", test.reason, o.environment.ImageDigests, test.want)
		}
		err := o.validate()
		if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestResyncPeriod bounds how often registries are reconciled.
func TestResyncPeriod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "clusterregistry-system")
	for _, test := range []struct {
		args    []string
		want    time.Duration
		refused bool
	}{
		{nil, 2 * time.Minute, false},
		{[]string{"--resync-period=1s"}, time.Second, false},
		{[]string{"--resync-period=2m"}, 2 * time.Minute, false},
		{[]string{"--resync-period=0s"}, 0, true},
		{[]string{"--resync-period=-1s"}, -time.Second, true},
		{[]string{"--resync-period=999ms"}, 999 * time.Millisecond, true},
		{[]string{"--resync-period=3m"}, 3 * time.Minute, true},
	} {
		o := newOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		err := o.validate()
		if o.resyncPeriod != test.want || (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "it must be from 1s to 2m0s") {
			t.Errorf("%q: %s, %v", test.args, o.resyncPeriod, err)
		}
	}
}

// TestClusterDomain finds the domain in what kubelet writes for pods.
func TestClusterDomain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	for reason, test := range map[string]struct{ content, want string }{
		"the usual one":          {"search team.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\n", "cluster.local"},
		"one of the site's":      {"nameserver 10.96.0.10\nsearch team.svc.k8s.corp.example svc.k8s.corp.example k8s.corp.example corp.example\n", "k8s.corp.example"},
		"with a final dot":       {"search team.svc.k8s.example. svc.k8s.example. k8s.example.\n", "k8s.example"},
		"not in a pod":           {"search corp.example\nnameserver 192.168.0.1\n", "cluster.local"},
		"nothing is searched in": {"nameserver 192.168.0.1\n", "cluster.local"},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := clusterDomain(file); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
	if got := clusterDomain(file + ".none"); got != "cluster.local" {
		t.Errorf("without the file: %q", got)
	}
}
