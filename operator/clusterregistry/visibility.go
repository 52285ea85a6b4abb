package clusterregistry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/rand"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// shown is which clusters the servers show, and what of the spec they don't get.
type shown struct {
	shown operatorv1alpha1.Visibility
	held  verdict.Verdict
}

// readVisibility finds out which clusters the servers are to show. What they hide is shown to
// everyone again only where that is approved. That they hide it is told by their Deployment,
// by the status and by the record of etcd's identity: none alone survives everything. The last
// stays with the data that a registry has left, for the next one of its name.
func (s *scope) readVisibility(ctx context.Context) error {
	deployment, err := s.Deployment(ctx)
	if err != nil {
		return fmt.Errorf("read which clusters the servers show: %w", err)
	}
	s.visibility = s.decideVisibility(deployment != nil && render.HidesClusters(deployment), deployment != nil)
	if err := s.recordVisibility(ctx); err != nil {
		return fmt.Errorf("record which clusters the servers show: %w", err)
	}
	return nil
}

// recordVisibility has the record say the same as the status.
func (s *scope) recordVisibility(ctx context.Context) error {
	id := ""
	if status := s.Registry.Status.Visibility; status != nil {
		id = status.ID
	}
	if s.Identity.Record == nil || s.Identity.Record.Visibility == id || s.ReadOnly() || s.PausedUntil() != "" {
		return nil
	}
	record := *s.Identity.Record
	record.Visibility = id
	return s.Identity.Write(ctx, &record)
}

// decideVisibility decides by whether the servers hide clusters now, where there are any, and
// keeps the status.
func (s *scope) decideVisibility(hides, exist bool) shown {
	server, status := s.Registry.Spec.Server, &s.Registry.Status
	if record := s.Identity.Record; status.Visibility == nil && record != nil && record.Visibility != "" {
		status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: record.Visibility}
	}
	if hides && status.Visibility == nil {
		status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: rand.String(8)}
	}
	if server.Visible() == operatorv1alpha1.VisibilityClusterSets {
		return shown{shown: operatorv1alpha1.VisibilityClusterSets}
	}
	approved := status.Visibility != nil && server.ShowsAllFor() == status.Visibility.ID
	switch {
	case approved && exist && !hides:
		status.Visibility = nil // the approval is used up
		return shown{shown: operatorv1alpha1.VisibilityAll}
	case approved || status.Visibility == nil:
		return shown{shown: operatorv1alpha1.VisibilityAll}
	}
	if s.upgrade != nil {
		return shown{shown: operatorv1alpha1.VisibilityClusterSets} // nothing may block its completion
	}
	return shown{operatorv1alpha1.VisibilityClusterSets, verdict.Waiting(operatorv1alpha1.ReasonVisibilityNotApproved,
		"spec.server.authorization.visibility is All, which would show all clusters to everyone who may read clusters, and the servers keep showing those of users' ClusterSets alone: to approve it, set spec.server.authorization.visibilityApprovedFor to %s; else set visibility back to ClusterSets", status.Visibility.ID).In(verdict.Resync).DegradedIf(true)}
}
