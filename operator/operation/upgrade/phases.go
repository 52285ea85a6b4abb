package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/semver"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// snapshotFresh is how old a snapshot may be when members or servers are first
	// touched.
	snapshotFresh = 15 * time.Minute
	// agreeRetry is when members are asked again whether they hold the same data.
	agreeRetry = 30 * time.Second
)

// preflight is complete when nothing speaks against an upgrade.
func (h Handler) preflight(ctx context.Context) verdict.Verdict {
	for _, condition := range h.Stages {
		if v := h.Verdicts[condition]; !v.Complete() {
			return h.Waiting("starts when %s is True: %s", condition, v.Message)
		}
	}
	if h.Registry.Spec.Etcd.External != nil {
		return verdict.Verdict{}
	}
	quota := h.EtcdQuota
	for _, member := range h.EtcdState.Members {
		if err := h.EtcdState.Gate(h.EtcdIdentity, member.Name); err != nil && !errors.Is(err, etcd.ErrSingleMember) {
			return h.Waiting("starts when etcd is healthy: %s", err)
		}
		if member.DBSize > quota/10*9 {
			return h.Waiting("starts when etcd has enough space: the data of %s takes %d of %d MiB; have its members defragmented (kubectl registry etcd defrag), or raise spec.etcd.storage.size", member.Name, member.DBSize>>20, quota>>20)
		}
	}
	// What differs before would be blamed on the upgrade, or spread by it.
	if err := h.EtcdAccess.Agree(ctx); err != nil {
		return h.Waiting("starts when the etcd members are verified to hold the same data: %s", err).In(agreeRetry)
	}
	return verdict.Verdict{}
}

// snapshot is complete when a fresh snapshot was taken.
func (h Handler) snapshot(ctx context.Context) verdict.Verdict {
	saved, v := h.Actions.TakeSnapshot(ctx, h.Snapshot)
	switch {
	case !saved.CompletionTime.IsZero() && h.Now.Sub(saved.CompletionTime) > snapshotFresh:
		// No one looked for that long, and much can have been written since.
		h.enter(operatorv1alpha1.PhasePreflight)
		return h.Waiting("starts again: the snapshot %s completed at %s, and must be recent", saved.Name, saved.CompletionTime.UTC().Format(time.RFC3339)).In(verdict.AtOnce)
	case v.Reason == operatorv1alpha1.ReasonProgressing:
		return h.Waiting("%s", v.Message)
	case v.Complete():
		h.enlistTransition() // the history may have been emptied since
		last := &h.Registry.Status.History[0]
		last.Snapshot, last.SnapshotRevision = saved.Name, saved.Revision
	}
	return v
}

// etcd is complete when all members run the target version, and store in its format.
func (h Handler) etcd(ctx context.Context) verdict.Verdict {
	target, onTarget, all := h.Release().Members.Etcd, int32(0), h.Registry.Spec.Etcd.Replicas
	for _, member := range h.Registry.Status.Etcd.Members {
		if member.Version == target {
			onTarget++
		}
	}
	progress := fmt.Sprintf("etcd %d/%d members on %s", onTarget, all, target)
	h.progress(onTarget, all)
	if v := h.Verdicts[operatorv1alpha1.ConditionEtcdReady]; !v.Complete() {
		return h.Waiting("%s; %s", progress, h.EtcdDetail)
	}
	if onTarget < all {
		return h.Waiting("%s", progress)
	}
	for _, member := range h.EtcdState.Members {
		if stored := "v" + member.StorageVersion; member.StorageVersion != "" && semver.MajorMinor(stored) != semver.MajorMinor(target) {
			return h.Waiting("%s; the storage version of %s is still %s", progress, member.Name, stored)
		}
	}
	if err := h.EtcdAccess.Agree(ctx); err != nil {
		return h.Waiting("%s; data consistency is not verified: %s", progress, err)
	}
	return verdict.Verdict{}
}

// servers is complete when all servers are of the new release.
func (h Handler) servers(_ context.Context) verdict.Verdict {
	if h.Servers.Failure != nil {
		return h.fail("the servers of %s do not become ready: %s", h.To.Version, h.Servers.Failure)
	}
	return h.serversOf(h.To.Version)
}

// returned is complete when all servers are of the previous release.
func (h Handler) returned(_ context.Context) verdict.Verdict {
	return h.serversOf(h.From.Version)
}

// serversOf waits for all servers to be of a release.
func (h Handler) serversOf(release string) verdict.Verdict {
	updated, all := h.Registry.Status.Server.UpdatedReplicas, h.Registry.Spec.Server.Replicas
	progress := fmt.Sprintf("servers %d/%d on %s", updated, all, release)
	h.progress(updated, all)
	if v := h.Verdicts[operatorv1alpha1.ConditionServerReady]; !v.Complete() {
		progress += "; " + v.Message
		if h.Message != "" {
			progress += "; rolled back because " + h.Message
		}
		return h.Waiting("%s", progress)
	}
	if h.Registry.Status.Version != release {
		return h.Waiting("%s", progress)
	}
	return verdict.Verdict{}
}
