package upgrade

import (
	"k8s.io/apimachinery/pkg/api/meta"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// Planned is what is to be done about the release of a registry.
type Planned struct {
	// Verdict says what is against what the spec asks for.
	verdict.Verdict
	// Release is what is rendered, none where nothing may be.
	Release version.Release
	// Upgrade is the one that is under way, nil when none is.
	Upgrade *Upgrade
}

// Plan decides which release is rendered, and whether an upgrade begins, of all that there are.
// It compares the spec with what runs, never with an earlier spec.
func Plan(p pass.Pass, all []version.Release) Planned {
	d := &planner{Pass: p}
	v := d.plan(all)
	return Planned{Verdict: v, Release: d.Release, Upgrade: d.upgrade}
}

// planner is the plan of one reconcile as it comes about. The release of its copy of the pass is
// the one that is rendered.
type planner struct {
	pass.Pass
	upgrade *Upgrade
}

// done is a plan that has nothing to say.
var done verdict.Verdict

// plan decides which release is rendered, and whether an upgrade begins.
func (d *planner) plan(all []version.Release) verdict.Verdict {
	recorded := d.membersOf()
	if _, err := version.Find(all, recorded); recorded != "" && err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "etcd members are of %s, which this operator does not know: install the operator that upgraded them, or a newer one; nothing is changed until then", recorded).In(verdict.Resync)
	}
	releases := version.WithMembers(all, recorded, d.etcdSeen()...)
	if under := d.Registry.Status.Operation; d.Upgrading() || under != nil && operation.Title(under) == "" {
		return d.planUpgrade(releases)
	}
	wanted, running := string(d.Registry.Spec.Version), d.Running()
	release, err := version.Find(releases, wanted)
	if err == nil {
		err = version.CheckUpgrade(releases, running, wanted)
	}
	switch {
	case err != nil:
		return d.stay(releases, verdict.Waiting(reasonOf(err), "%s", err))
	case running != "" && running != wanted:
		return d.planStep(releases, release)
	}
	d.Release = release
	err = release.CheckHost(d.HostVersion)
	if err == nil && running != "" {
		err = version.CheckSupport(releases, running, true)
	}
	if err != nil {
		// A host or an operator that was upgraded under a running registry takes nothing
		// away.
		return verdict.Waiting(reasonOf(err), "%s", err).In(verdict.Resync).DegradedIf(running != "")
	}
	return done
}

// planStep begins the upgrade to a release, unless something is against it.
func (d *planner) planStep(releases []version.Release, to version.Release) verdict.Verdict {
	if last := history.Last(d.Registry); last.State == operatorv1alpha1.TransitionRolledBack && last.Version == to.Version && last.Generation == d.Registry.Generation {
		return d.stay(releases, verdict.Waiting(operatorv1alpha1.ReasonRolledBack, "the upgrade to %s was rolled back, and is retried when the spec changes: %s", to.Version, last.Message))
	}
	err := to.CheckHost(d.HostVersion)
	if seen := d.Registry.Status.EtcdVersion; err == nil && d.Registry.Spec.Etcd.External == nil && seen != "" {
		err = version.CheckEtcd(seen, to.Members.Etcd)
	}
	if err != nil {
		return d.stay(releases, verdict.Waiting(reasonOf(err), "%s", err))
	}
	if operation.ChangesMembers(d.Registry.Status.Operation) {
		return d.stay(releases, verdict.Waiting(operatorv1alpha1.ReasonOperationInProgress, "the upgrade to %s starts when the change of etcd's members is complete", to.Version)).In(verdict.Soon)
	}
	if under := operation.Title(d.Registry.Status.Operation); under != "" {
		if d.Registry.Status.Operation.Phase != operatorv1alpha1.PhasePreflight || d.makesRoom() {
			return d.stay(releases, verdict.Waiting(operatorv1alpha1.ReasonOperationInProgress, "the upgrade to %s starts when %s is complete (the condition %s says what is awaited)", to.Version, under, operatorv1alpha1.ConditionProgressing)).In(verdict.Soon)
		}
		operation.End(d.Registry) // nothing is touched yet
	}
	from, err := version.Find(releases, d.Running())
	if err != nil {
		return verdict.Failed(err)
	}
	if reason, _ := d.Halted(); !d.Installed() || reason != "" {
		// Retained data is first taken over by the release that wrote it.
		d.Release = from
		return done
	}
	d.begin(from, to)
	return done
}

// makesRoom reports whether the operation that is under way makes room in an etcd that was full
// in the reconcile before, as far as was said.
func (d *planner) makesRoom() bool {
	c := meta.FindStatusCondition(d.Before.Conditions, operatorv1alpha1.ConditionEtcdReady)
	return d.Registry.Status.Operation.Type == operatorv1alpha1.OperationDefragmentation && c != nil && c.Reason == operatorv1alpha1.ReasonNoSpace
}

// stay keeps to the release that runs, if one does.
func (d *planner) stay(releases []version.Release, v verdict.Verdict) verdict.Verdict {
	running, err := version.Find(releases, d.Running())
	if err != nil || d.Registry.Status.Version == "" {
		return v.In(verdict.Resync)
	}
	d.Release = running
	v.Message += "; " + running.Version + " keeps running"
	return v.In(verdict.Resync).DegradedIf(true)
}

// membersOf returns the release that etcd's members are of, empty when none is
// recorded.
func (d *planner) membersOf() string {
	if d.Identity.Record == nil {
		return ""
	}
	return d.Identity.Record.EtcdRelease
}

// etcdSeen are the versions of etcd that members have run.
func (d *planner) etcdSeen() []string {
	var seen []string
	if d.Registry.Spec.Etcd.External != nil {
		return nil
	}
	if d.Identity.Record != nil {
		seen = append(seen, d.Identity.Record.EtcdVersion)
	}
	for _, member := range d.Before.Etcd.Members {
		seen = append(seen, member.Version)
	}
	return seen
}
