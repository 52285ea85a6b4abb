package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/meta"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// plan decides which release is rendered, and whether an upgrade begins. It
// compares the spec with what runs, never with an earlier spec.
func (s *scope) plan(all []version.Release) verdict.Verdict {
	recorded := s.membersOf()
	if _, err := version.Find(all, recorded); recorded != "" && err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "etcd members are of %s, which this operator does not know: install the operator that upgraded them, or a newer one; nothing is changed until then", recorded).In(verdict.Resync)
	}
	releases := version.WithMembers(all, recorded, s.etcdSeen()...)
	if under := s.Registry.Status.Operation; s.Upgrading() || under != nil && operation.Title(under) == "" {
		return s.planUpgrade(releases)
	}
	wanted, running := string(s.Registry.Spec.Version), s.Running()
	release, err := version.Find(releases, wanted)
	if err == nil {
		err = version.CheckUpgrade(releases, running, wanted)
	}
	switch {
	case err != nil:
		return s.stay(releases, verdict.Waiting(reasonOf(err), "%s", err))
	case running != "" && running != wanted:
		return s.planStep(releases, release)
	}
	s.Release = release
	err = release.CheckHost(s.HostVersion)
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
func (s *scope) planStep(releases []version.Release, to version.Release) verdict.Verdict {
	if last := history.Last(s.Registry); last.State == operatorv1alpha1.TransitionRolledBack && last.Version == to.Version && last.Generation == s.Registry.Generation {
		return s.stay(releases, verdict.Waiting(operatorv1alpha1.ReasonRolledBack, "the upgrade to %s was rolled back, and is retried when the spec changes: %s", to.Version, last.Message))
	}
	err := to.CheckHost(s.HostVersion)
	if seen := s.Registry.Status.EtcdVersion; err == nil && s.Registry.Spec.Etcd.External == nil && seen != "" {
		err = version.CheckEtcd(seen, to.Members.Etcd)
	}
	if err != nil {
		return s.stay(releases, verdict.Waiting(reasonOf(err), "%s", err))
	}
	if operation.ChangesMembers(s.Registry.Status.Operation) {
		return s.stay(releases, verdict.Waiting(operatorv1alpha1.ReasonOperationInProgress, "the upgrade to %s starts when the change of etcd's members is complete", to.Version)).In(verdict.Soon)
	}
	if under := operation.Title(s.Registry.Status.Operation); under != "" {
		if s.Registry.Status.Operation.Phase != operatorv1alpha1.PhasePreflight || s.makesRoom() {
			return s.stay(releases, verdict.Waiting(operatorv1alpha1.ReasonOperationInProgress, "the upgrade to %s starts when %s is complete (the condition %s says what is awaited)", to.Version, under, operatorv1alpha1.ConditionProgressing)).In(verdict.Soon)
		}
		operation.End(s.Registry) // nothing is touched yet
	}
	from, err := version.Find(releases, s.Running())
	if err != nil {
		return verdict.Failed(err)
	}
	if reason, _ := s.Halted(); !s.Installed() || reason != "" {
		// Retained data is first taken over by the release that wrote it.
		s.Release = from
		return done
	}
	s.begin(from, to)
	return done
}

// makesRoom reports whether the operation that is under way makes room in an etcd that was full
// in the reconcile before, as far as was said.
func (s *scope) makesRoom() bool {
	c := meta.FindStatusCondition(s.Before.Conditions, operatorv1alpha1.ConditionEtcdReady)
	return s.Registry.Status.Operation.Type == operatorv1alpha1.OperationDefragmentation && c != nil && c.Reason == operatorv1alpha1.ReasonNoSpace
}

// stay keeps to the release that runs, if one does.
func (s *scope) stay(releases []version.Release, v verdict.Verdict) verdict.Verdict {
	running, err := version.Find(releases, s.Running())
	if err != nil || s.Registry.Status.Version == "" {
		return v.In(verdict.Resync)
	}
	s.Release = running
	v.Message += "; " + running.Version + " keeps running"
	return v.In(verdict.Resync).DegradedIf(true)
}
