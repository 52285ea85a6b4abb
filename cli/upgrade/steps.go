// Package upgrade plans and starts upgrades of registries: the commands upgrade plan
// and upgrade to. What is possible is what operator/version says, by which the
// operator decides as well.
package upgrade

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/version"
)

// Plan is what upgrades of a registry are possible, and what they do.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Running is the release that runs, Desired that of the spec.
	Running string `json:"running"`
	Desired string `json:"desired"`
	// Holds are why no upgrade would begin now.
	Holds []string `json:"holds,omitempty"`
	// Releases are all that are newer than what runs.
	Releases []Target `json:"releases"`
	// Steps lead to the target, one upgrade after the other.
	Steps []Step `json:"steps,omitempty"`
}

// Target is a release, and whether the registry can be brought to it.
type Target struct {
	Version string `json:"version"`
	// Path are the releases to go through, the version itself last; empty when there is
	// no way.
	Path []string `json:"path,omitempty"`
	// Problem is why it can't be reached.
	Problem string `json:"problem,omitempty"`
}

// Step is one upgrade.
type Step struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Phases []Phase `json:"phases"`
	// Interrupts are what clients notice.
	Interrupts []string `json:"interrupts,omitempty"`
	// Rollback says whether the servers can return when the new ones fail.
	Rollback bool `json:"rollback"`
}

// Phase is a part of an upgrade.
type Phase struct {
	Name string `json:"name"`
	Does string `json:"does"`
	// WaitsFor is what ends it.
	WaitsFor string `json:"waitsFor"`
}

// MakePlan returns the plan for a registry. To is the release to go to, empty for the
// newest that can be reached.
func MakePlan(releases []version.Release, registry *v1alpha1.ClusterRegistry, to string) (*Plan, error) {
	running := registry.Status.Version
	plan := &Plan{Namespace: registry.Namespace, Name: registry.Name, Running: running, Desired: string(registry.Spec.Version), Holds: hostcluster.Holds(registry), Releases: []Target{}}
	if running == "" {
		return nil, fmt.Errorf("the registry %s/%s is not installed yet: \"kubectl registry status %s\" says what it waits for", registry.Namespace, registry.Name, registry.Name)
	}
	if _, err := version.Find(releases, running); err != nil {
		return nil, fmt.Errorf("the registry runs %s, which this plugin does not know: install the plugin of the operator's release", running)
	}
	newest := ""
	for _, release := range releases {
		if semver.Compare(release.Version, running) <= 0 {
			continue
		}
		target := Target{Version: release.Version, Path: version.Path(releases, running, release.Version)}
		if err := reachable(releases, registry, target); err != nil {
			target.Path, target.Problem = nil, err.Error()
		} else {
			newest = release.Version
		}
		plan.Releases = append(plan.Releases, target)
	}
	if to == "" {
		to = newest
	}
	if to == "" {
		return plan, nil
	}
	i := slices.IndexFunc(plan.Releases, func(t Target) bool { return t.Version == to })
	switch {
	case to == running:
		return plan, nil
	case i < 0:
		if err := version.CheckUpgrade(releases, running, to); err != nil && !errors.Is(err, version.ErrUnknown) {
			return nil, err
		}
		var known []string
		for _, release := range releases {
			known = append(known, release.Version)
		}
		return nil, fmt.Errorf("this plugin knows no release %s after %s: it knows %s", to, running, strings.Join(known, ", "))
	case plan.Releases[i].Problem != "":
		return nil, fmt.Errorf("%s can't be reached: %s", to, plan.Releases[i].Problem)
	}
	from, err := version.Find(releases, running)
	if err != nil {
		return nil, err
	}
	for _, next := range plan.Releases[i].Path {
		release, err := version.Find(releases, next)
		if err != nil {
			return nil, err
		}
		plan.Steps = append(plan.Steps, step(registry, from, release))
		from = release
	}
	return plan, nil
}

// reachable returns why a release can't be reached.
func reachable(releases []version.Release, registry *v1alpha1.ClusterRegistry, target Target) error {
	if len(target.Path) == 0 {
		return fmt.Errorf("no upgrade leads there from %s", registry.Status.Version)
	}
	etcd := registry.Status.EtcdVersion
	for _, next := range target.Path {
		release, err := version.Find(releases, next)
		if err != nil {
			return err
		}
		if host := registry.Status.HostVersion; host != "" {
			if err := release.CheckHost(host); err != nil {
				return err
			}
		}
		if etcd == "" || external(registry) {
			continue
		}
		if !strings.HasPrefix(etcd, "v") {
			etcd = "v" + etcd
		}
		if err := version.CheckEtcd(etcd, release.Etcd); err != nil {
			return err
		}
		etcd = release.Etcd
	}
	return nil
}

func external(registry *v1alpha1.ClusterRegistry) bool { return registry.Spec.Etcd.External != nil }

// step returns what one upgrade does.
func step(registry *v1alpha1.ClusterRegistry, from, to version.Release) Step {
	out := Step{From: from.Version, To: to.Version, Rollback: version.CanReturn(from, to)}
	add := func(phase v1alpha1.OperationPhase, does, waitsFor string) {
		out.Phases = append(out.Phases, Phase{string(phase), does, waitsFor})
	}
	add(v1alpha1.PhasePreflight, "checks; nothing is touched", "all conditions but Progressing True, etcd in order and the same data in every member")
	if !external(registry) {
		add(v1alpha1.PhaseSnapshot, "saves etcd and verifies the snapshot by restoring it", "the Job "+registry.Name+"-snapshot")
		if !from.Members.Same(to.Members) {
			does := "replaces etcd members one at a time, the leader last"
			if from.Etcd != to.Etcd {
				does += fmt.Sprintf(": etcd %s -> %s", from.Etcd, to.Etcd)
			}
			add(v1alpha1.PhaseEtcd, does, "every member, with the same data everywhere")
			if registry.Spec.Etcd.Replicas <= 1 {
				out.Interrupts = append(out.Interrupts, "the registry is not available for some seconds while its only etcd member is replaced")
			}
		}
	}
	add(v1alpha1.PhaseServer, "replaces servers, each when its successor is ready", "all servers of "+to.Version)
	add(v1alpha1.PhaseVerification, "uses the new servers as clients do; nothing is written", "every API version discovered, listed and tried")
	if from.Stores != to.Stores {
		add(v1alpha1.PhaseStorageMigration, fmt.Sprintf("writes clusters again that are stored in another form: %s -> %s", from.Stores, to.Stores), "none that is stored in another form")
	}
	both := version.ServesBoth(from, to)
	for _, served := range from.Serves {
		if !slices.Contains(both, served) {
			out.Interrupts = append(out.Interrupts, "clusterregistry.k8s.io/"+served+" is no longer served: its clients have to use another version first")
		}
	}
	if !out.Rollback {
		out.Interrupts = append(out.Interrupts, from.Version+" does not read what "+to.Version+" stores: the servers can't return once that has begun")
	}
	return out
}
