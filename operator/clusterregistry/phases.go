package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/registryclient"
	"github.com/clusterregistry/operator/operator/verdict"
)

// waits returns the verdict of the present phase. As long as that is ahead, it says
// that the registry will be down.
func (s *scope) waits(format string, args ...any) verdict.Verdict {
	u := s.upgrade
	v := verdict.Waiting(string(u.Phase), format, args...).In(soon)
	replaced := !u.from.Members.Same(u.to.Members)
	if s.registry.Spec.Etcd.Replicas == 1 && replaced && !u.reached(operatorv1alpha1.PhaseServer) && u.Phase != operatorv1alpha1.PhaseRollback {
		v.Message += "; etcd has a single member, and while that is replaced the registry does not serve, for some seconds"
	}
	return v
}

// progress notes how far the present phase is.
func (s *scope) progress(done, of int32) {
	s.upgrade.Progress = fmt.Sprintf("%s %d/%d", s.upgrade.Phase, done, of)
}

// preflight is complete when nothing speaks against an upgrade.
func (r *Reconciler) preflight(ctx context.Context, s *scope) verdict.Verdict {
	for _, stage := range stages(s.registry.Spec.Mode) {
		if v := s.results[stage.condition]; !v.Complete() {
			return s.waits("begins when %s is True, which waits: %s", stage.condition, v.Message)
		}
	}
	if s.registry.Spec.Etcd.External != nil {
		return done
	}
	quota := s.etcdQuota()
	for _, member := range s.etcdState.Members {
		if err := s.etcdState.Gate(s.identity.Identity, member.Name); err != nil && !errors.Is(err, etcd.ErrSingleMember) {
			return s.waits("begins when etcd is in order: %s", err)
		}
		if member.DBSize > quota/10*9 {
			return s.waits("begins when etcd has room: the data of %s takes %d of %d MiB; have etcd compacted and defragmented (etcdctl defrag)", member.Name, member.DBSize>>20, quota>>20)
		}
	}
	// What differs before would be blamed on the upgrade, or spread by it.
	if err := s.etcdAccess.Agree(ctx); err != nil {
		return s.waits("begins when etcd's members are known to hold the same data: %s", err).In(backstop)
	}
	return done
}

// upgradeEtcd is complete when all members run what is wanted, and have made
// their files so.
func (r *Reconciler) upgradeEtcd(ctx context.Context, s *scope) verdict.Verdict {
	target, onTarget, all := s.release.Members.Etcd, int32(0), s.registry.Spec.Etcd.Replicas
	for _, member := range s.registry.Status.Etcd.Members {
		if member.Version == target {
			onTarget++
		}
	}
	progress := fmt.Sprintf("etcd %d/%d members on %s", onTarget, all, target)
	s.progress(onTarget, all)
	if v := s.results[operatorv1alpha1.ConditionEtcdReady]; !v.Complete() {
		return s.waits("%s; %s", progress, strings.TrimPrefix(v.Message, s.rolling+"; "))
	}
	if onTarget < all {
		return s.waits("%s", progress)
	}
	for _, member := range s.etcdState.Members {
		if stored := "v" + member.StorageVersion; member.StorageVersion != "" && semver.MajorMinor(stored) != semver.MajorMinor(target) {
			return s.waits("%s; the files of %s are still of %s", progress, member.Name, stored)
		}
	}
	if err := s.etcdAccess.Agree(ctx); err != nil {
		return s.waits("%s; that they hold the same data is not proven: %s", progress, err)
	}
	return done
}

// upgradeServers is complete when all servers are of the new release.
func (r *Reconciler) upgradeServers(_ context.Context, s *scope) verdict.Verdict {
	if s.serversFailed != "" {
		return s.fail("the servers of %s don't come up: %s", s.upgrade.to.Version, s.serversFailed)
	}
	return s.serversOf(s.upgrade.to.Version)
}

// returned is complete when all servers are of the release before.
func (r *Reconciler) returned(_ context.Context, s *scope) verdict.Verdict {
	return s.serversOf(s.upgrade.from.Version)
}

// serversOf waits for all servers to be of a release.
func (s *scope) serversOf(release string) verdict.Verdict {
	updated, all := s.registry.Status.Server.UpdatedReplicas, s.registry.Spec.Server.Replicas
	progress := fmt.Sprintf("servers %d/%d on %s", updated, all, release)
	s.progress(updated, all)
	if v := s.results[operatorv1alpha1.ConditionServerReady]; !v.Complete() {
		progress += "; " + v.Message
		if s.upgrade.Message != "" {
			progress += "; returned since " + s.upgrade.Message
		}
		return s.waits("%s", progress)
	}
	if s.registry.Status.Version != release {
		return s.waits("%s", progress)
	}
	return done
}

// client returns a client of the registry: through the host, or at its own
// Service.
func (r *Reconciler) client(ctx context.Context, s *scope) (*registryclient.Client, error) {
	if s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		return registryclient.New(r.Host)
	}
	config, err := r.independentConfig(ctx, s)
	if err != nil {
		return nil, err
	}
	return registryclient.New(config)
}
