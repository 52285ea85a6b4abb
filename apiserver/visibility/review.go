package visibility

import (
	"context"
	"errors"
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

// errCrowded says that a review would have come too late for the request that needs it.
var errCrowded = errors.New("too many reviews are waiting")

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
		found, err := p.askOnce(ctx, who, verb, name)
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

// askOnce returns the answer to a question that is kept, or has it asked: once, however many
// requests wait for it, and one such question about a user at a time. So none of them can
// have all that the limiter allows, whatever sets its requests name.
func (p *Policy) askOnce(ctx context.Context, who caller, verb, set string) (found answer, err error) {
	q := question{who.key, verb, set}
	if found, ok := p.lookUp(q, age{}); ok {
		return found, nil
	}
	if p.master(who) {
		return p.ask(ctx, who, verb, set, age{})
	}
	done, err := p.turns.take(ctx, "single "+who.user, q)
	if err != nil {
		return answer{}, err
	}
	defer func() { done(err) }()
	return p.ask(ctx, who, verb, set, age{})
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

// age is how old an answer may be.
type age struct {
	// since is when it may have been asked, at the earliest.
	since time.Time
	// round is when the reviews of all sets began that it is to be one of, if it is: such an
	// answer counts until there is the last, however long it is kept.
	round time.Time
}

// ask returns the answer to a question, which is not older than it may be.
func (p *Policy) ask(ctx context.Context, who caller, verb, set string, of age) (answer, error) {
	if p.master(who) {
		return answer{allowed: true, asked: time.Now(), forever: true}, nil
	}
	q := question{who.key, verb, set}
	if found, ok := p.lookUp(q, of); ok {
		return found, nil
	}
	if p.Limiter != nil {
		if err := p.Limiter.Wait(ctx); err != nil {
			return answer{}, fmt.Errorf("%w: %w", errCrowded, err)
		}
		if found, ok := p.lookUp(q, of); ok {
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

// master reports whether a caller may do everything, whoever is asked.
func (p *Policy) master(who caller) bool {
	return p.Masters && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}

// lookUp returns an answer that is kept, and not older than it may be.
func (p *Policy) lookUp(q question, of age) (answer, bool) {
	kept, ok := p.known.Get(q)
	if !ok {
		return answer{}, false
	}
	found := kept.(answer)
	ofRound := !of.round.IsZero() && !found.asked.Before(of.round)
	return found, !found.asked.Before(of.since) && (ofRound || time.Since(found.asked) < p.lasts(found))
}

// lasts returns how long an answer is kept.
func (p *Policy) lasts(a answer) time.Duration {
	if a.allowed || p.Periods.Cache == 0 {
		return p.Periods.Cache
	}
	return max(denied*p.Periods.Cache, p.longest())
}

// longest returns how long the reviews of all sets may take, over as many requests as it needs.
func (p *Policy) longest() time.Duration {
	if p.Limiter == nil || p.Limiter.QPS() <= 0 || p.Periods.Cache == 0 {
		return 0
	}
	return time.Duration(rounds * float64(p.sets.Load()) / float64(p.Limiter.QPS()) * float64(time.Second))
}
