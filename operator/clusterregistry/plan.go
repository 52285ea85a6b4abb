package clusterregistry

import (
	"errors"
	"fmt"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/version"
)

// plan decides which release is rendered. It compares what is wanted with what
// runs, never with what was wanted before.
func (s *scope) plan(releases []version.Release) *hold {
	wanted, running := string(s.registry.Spec.Version), s.registry.Status.Version
	release, err := version.Find(releases, wanted)
	if err == nil {
		err = version.CheckUpgrade(running, wanted)
	}
	if err != nil {
		return s.stay(releases, err)
	}
	s.release = release
	if err := release.CheckHost(s.host); err != nil {
		// A host that was upgraded under a running registry takes nothing away.
		return waitFor(reasonOf(err), "%s", err).in(resync).impairedIf(running != "")
	}
	return nil
}

// stay goes on with the release that runs, if one does.
func (s *scope) stay(releases []version.Release, problem error) *hold {
	h := waitFor(reasonOf(problem), "%s", problem).in(resync)
	running, err := version.Find(releases, s.registry.Status.Version)
	if err != nil {
		return h
	}
	s.release = running
	h.message += fmt.Sprintf("; %s goes on", running.Version)
	return h.impairedIf(true)
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, version.ErrUnknown):
		return operatorv1alpha1.ReasonVersionUnknown
	case errors.Is(err, version.ErrHost):
		return operatorv1alpha1.ReasonHostUnsupported
	case errors.Is(err, version.ErrUpgrade):
		return operatorv1alpha1.ReasonUpgradeUnsupported
	}
	return operatorv1alpha1.ReasonError
}
