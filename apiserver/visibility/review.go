package visibility

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

const (
	resource    = "clustersets"
	subresource = "clusters"
)

// question is what a review asks about a caller. An empty set asks about all clusters.
type question struct{ caller, verb, set string }

// answer is what a review has found.
type answer struct {
	allowed bool
	reason  string
	// asked is when the review began.
	asked time.Time
	// forever says that the answer can't change.
	forever bool
}

// Decision is what a caller may do to the clusters of a set.
type Decision struct {
	// Allowed says that it may.
	Allowed bool
	// Lack says what it lacks otherwise.
	Lack string
}

// Decide returns whether the caller of a context may do something to the clusters in a
// set; an empty one stands for clusters in none. An error says that it is not known.
func (p *Policy) Decide(ctx context.Context, verb, set string) (Decision, error) {
	who, err := callerOf(ctx)
	if err != nil {
		return Decision{}, unknown(verb, err)
	}
	for _, name := range slices.Compact([]string{"", set}) {
		found, err := p.ask(ctx, who, verb, name, time.Time{})
		if err != nil {
			return Decision{}, unknown(verb, err)
		}
		if found.allowed {
			return Decision{Allowed: true}, nil
		}
		if name == set {
			return Decision{Lack: lack(who, verb, set, found.reason)}, nil
		}
	}
	return Decision{}, nil
}

// lack says which permission is missing.
func lack(who caller, verb, set, reason string) string {
	of := fmt.Sprintf("for the name %q", set)
	if set == "" {
		of = "for all names, as a cluster in no ClusterSet needs"
	}
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s%s", who.GetName(), verb, resource+"/"+subresource, clusterregistry.GroupName, of, reason)
}

// ask returns the answer to a question, which is not older than some time.
func (p *Policy) ask(ctx context.Context, who caller, verb, set string, since time.Time) (answer, error) {
	if p.Masters && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return answer{allowed: true, asked: time.Now(), forever: true}, nil
	}
	q := question{who.key, verb, set}
	if found, ok := p.lookUp(q, since); ok {
		return found, nil
	}
	if p.Limiter != nil {
		if err := p.Limiter.Wait(ctx); err != nil {
			return answer{}, fmt.Errorf("too many reviews are waiting: %w", err)
		}
		if found, ok := p.lookUp(q, since); ok {
			return found, nil
		}
	}
	asked := time.Now()
	decision, reason, err := p.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who.Info, Verb: verb, APIGroup: clusterregistry.GroupName, APIVersion: v1beta1.SchemeGroupVersion.Version,
		Resource: resource, Subresource: subresource, Name: set, ResourceRequest: true,
	})
	allowed := decision == authorizer.DecisionAllow
	outcome := outcomeDenied
	switch {
	case allowed:
		outcome = outcomeAllowed
	case err != nil:
		reviews.WithContext(ctx).WithLabelValues(outcomeError).Inc()
		return answer{}, err
	}
	reviews.WithContext(ctx).WithLabelValues(outcome).Inc()
	found := answer{allowed: allowed, reason: reason, asked: asked}
	if p.Periods.Cache > 0 {
		p.known.Add(q, found)
	}
	return found, nil
}

// lookUp returns an answer that is kept, and not older than some time.
func (p *Policy) lookUp(q question, since time.Time) (answer, bool) {
	kept, ok := p.known.Get(q)
	if !ok {
		return answer{}, false
	}
	found, lasts := kept.(answer), p.Periods.Cache
	if !found.allowed {
		lasts *= denied
	}
	return found, !found.asked.Before(since) && time.Since(found.asked) < lasts
}
