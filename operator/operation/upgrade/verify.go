package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// failingSeen is for how long this operator itself must have seen the new servers
// fail before they are given up. One that was down itself knows nothing of the
// time between.
const failingSeen = time.Minute

// verify is complete when the new release does what its clients will ask of it.
// Only failures of the new servers count against them, and only while nothing
// that they stand on is at fault.
func (h Handler) verify(ctx context.Context) verdict.Verdict {
	u := h.Upgrade
	problem, theirs := h.used(ctx)
	if problem == "" || !theirs {
		u.FailingSince = nil
		h.Notes.change(h.Registry.UID, func(n *note) { n.failing = time.Time{} })
	}
	switch {
	case problem == "":
		return verdict.Verdict{}
	case !theirs:
		return h.Waiting("%s", problem)
	}
	if u.FailingSince == nil {
		u.FailingSince = &metav1.Time{Time: h.Now}
	}
	seen := h.Notes.change(h.Registry.UID, func(n *note) {
		if n.failing.IsZero() {
			n.failing = h.Now
		}
	})
	deadline := time.Duration(h.Registry.Spec.Server.ProgressDeadlineSeconds) * time.Second
	if h.Now.Sub(u.FailingSince.Time) > deadline && h.Now.Sub(seen.failing) >= min(failingSeen, deadline) {
		return h.fail("%s has failed verification for %s: %s", u.To.Version, deadline, problem)
	}
	return h.Waiting("%s", problem)
}

// used tries what clients do. It returns what does not work, nothing when all
// does, and whether the new servers are to blame.
func (h Handler) used(ctx context.Context) (problem string, theirs bool) {
	notTrue := func(condition string, v verdict.Verdict) string {
		return fmt.Sprintf("%s is not True: %s", condition, v.Message)
	}
	// Without these, servers can't serve. While they do for the most part, they are
	// no reason not to.
	for _, condition := range []string{operatorv1alpha1.ConditionCertificatesReady, operatorv1alpha1.ConditionEtcdReady} {
		if v := h.Verdicts[condition]; !v.Usable() {
			return notTrue(condition, v), false
		}
	}
	if v := h.Verdicts[operatorv1alpha1.ConditionServerReady]; !v.Complete() {
		return notTrue(operatorv1alpha1.ConditionServerReady, v), h.Servers.Failure != nil || !v.Usable() && v.Err == nil
	}
	if v := h.Verdicts[operatorv1alpha1.ConditionAPIServiceReady]; !v.Complete() {
		unreached := []string{operatorv1alpha1.ReasonNotAvailable, operatorv1alpha1.ReasonBackendDown}
		return notTrue(operatorv1alpha1.ConditionAPIServiceReady, v), slices.Contains(unreached, v.Reason)
	}
	client, err := h.Actions.Client(ctx)
	if err != nil {
		return err.Error(), false
	}
	if err := client.Verify(ctx, h.To.Serves); err != nil {
		return err.Error(), true
	}
	// What leads there from outside is not the servers'.
	if v := h.Verdicts[operatorv1alpha1.ConditionEndpointReady]; !v.Complete() {
		return notTrue(operatorv1alpha1.ConditionEndpointReady, v), false
	}
	return "", false
}
