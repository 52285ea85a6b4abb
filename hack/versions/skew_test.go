package main

import (
	"slices"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/operator/version"
)

// TestSkewIsTested compares what releases.yaml promises with what "make e2e-skew"
// can run: every minor version of hosts, and the oldest and the newest kubectl.
func TestSkewIsTested(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	minors := func(versions []string) (out []string) {
		for _, v := range versions {
			out = append(out, semver.MajorMinor(v)[1:])
		}
		slices.SortFunc(out, func(a, b string) int { return semver.Compare("v"+a, "v"+b) })
		return out
	}
	hosts, kubectls := minors(components.KubernetesVersions), minors(slices.Concat(components.KubernetesVersions, components.KubectlVersions))
	for _, r := range releases {
		if r.Host.From != hosts[0] || r.Host.To != hosts[len(hosts)-1] {
			t.Errorf("%s promises hosts from %s to %s, and clusters can be %v", r.Version, r.Host.From, r.Host.To, hosts)
		}
		if r.Kubectl.From != kubectls[0] || r.Kubectl.To != kubectls[len(kubectls)-1] {
			t.Errorf("%s promises kubectl from %s to %s, and there is %v", r.Version, r.Kubectl.From, r.Kubectl.To, kubectls)
		}
	}
}
