// Package visibility decides which clusters the servers of a registry show to those who may read
// clusters: all, or those of their ClusterSets. What was hidden is shown to everyone again only
// where a person approves that.
package visibility

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/rand"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Found is what was decided.
type Found struct {
	// Shown is which clusters the servers show.
	Shown operatorv1alpha1.Visibility
	// Held says what of the spec they don't get, done where they get all of it.
	Held verdict.Verdict
}

// Read finds out which clusters the servers are to show. What they hide is shown to
// everyone again only where that is approved. That they hide it is told by their Deployment,
// by the status and by the record of etcd's identity: none alone survives everything. The last
// stays with the data that a registry has left, for the next one of its name.
func Read(ctx context.Context, p pass.Pass) (Found, error) {
	deployment, err := p.Deployment(ctx)
	if err != nil {
		return Found{}, fmt.Errorf("read which clusters the servers show: %w", err)
	}
	found := decide(p, deployment != nil && render.HidesClusters(deployment), deployment != nil)
	if err := record(ctx, p); err != nil {
		return Found{}, fmt.Errorf("record which clusters the servers show: %w", err)
	}
	return found, nil
}

// record has the record say the same as the status.
func record(ctx context.Context, p pass.Pass) error {
	id := ""
	if status := p.Registry.Status.Visibility; status != nil {
		id = status.ID
	}
	if p.Identity.Record == nil || p.Identity.Record.Visibility == id || p.ReadOnly() || p.PausedUntil() != "" {
		return nil
	}
	now := *p.Identity.Record
	now.Visibility = id
	return p.Identity.Write(ctx, &now)
}

// decide decides by whether the servers hide clusters now, where there are any, and
// keeps the status.
func decide(p pass.Pass, hides, exist bool) Found {
	server, status := p.Registry.Spec.Server, &p.Registry.Status
	if record := p.Identity.Record; status.Visibility == nil && record != nil && record.Visibility != "" {
		status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: record.Visibility}
	}
	if hides && status.Visibility == nil {
		status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: rand.String(8)}
	}
	if server.Visible() == operatorv1alpha1.VisibilityClusterSets {
		return Found{Shown: operatorv1alpha1.VisibilityClusterSets}
	}
	approved := status.Visibility != nil && server.ShowsAllFor() == status.Visibility.ID
	switch {
	case approved && exist && !hides:
		status.Visibility = nil // the approval is used up
		return Found{Shown: operatorv1alpha1.VisibilityAll}
	case approved || status.Visibility == nil:
		return Found{Shown: operatorv1alpha1.VisibilityAll}
	}
	if p.Upgrading() {
		return Found{Shown: operatorv1alpha1.VisibilityClusterSets} // nothing may block its completion
	}
	return Found{operatorv1alpha1.VisibilityClusterSets, verdict.Waiting(operatorv1alpha1.ReasonVisibilityNotApproved,
		"spec.server.authorization.visibility is All, which would show all clusters to everyone who may read clusters, and the servers keep showing those of users' ClusterSets alone: to approve it, set spec.server.authorization.visibilityApprovedFor to %s; else set visibility back to ClusterSets", status.Visibility.ID).In(verdict.Resync).DegradedIf(true)}
}
