package clusterregistry

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/semver"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

const (
	// hostNewer and hostOlder are for how long the host must have given the same
	// answer before servers are made for that version. Of a control plane that is
	// upgraded one API server answers so and the next one otherwise, for an hour
	// perhaps, and it is going up.
	hostNewer = 10 * time.Minute
	hostOlder = time.Hour
)

// answers is what the host says of its minor version, such as v1.37, and since
// when it says nothing else. The zero value is ready to use.
type answers struct {
	lock  sync.Mutex
	minor string
	since time.Time
}

// heard notes an answer and returns since when all were the same.
func (a *answers) heard(minor string, now time.Time) time.Time {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.minor != minor {
		a.minor, a.since = minor, now
	}
	return a.since
}

// hostToRender returns the version of the host that servers are to be made for,
// such as 1.37: that for which they are made already, until the host has been
// another one for long enough.
func (r *Reconciler) hostToRender(ctx context.Context, s *scope) (string, error) {
	answered := semver.MajorMinor(s.host)
	steady := s.now.Sub(r.host.heard(answered, s.now))
	if s.registry.Spec.Mode != operatorv1alpha1.ModeAggregated {
		return strings.TrimPrefix(answered, "v"), nil
	}
	deployment, err := r.deployment(ctx, s)
	if err != nil {
		return "", err
	}
	if deployment != nil {
		made := "v" + deployment.Spec.Template.Annotations[operatorv1alpha1.AnnotationHostVersion]
		order := semver.Compare(answered, made)
		if semver.IsValid(made) && (order > 0 && steady < hostNewer || order < 0 && steady < hostOlder) {
			answered = made
		}
	}
	return strings.TrimPrefix(answered, "v"), nil
}
