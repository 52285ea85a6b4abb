package feed

import (
	"context"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// answer is what the newest review has found.
type answer struct {
	allowed bool
	// since is when the first review of a row of denials began, asked the newest, and allowedAt the last
	// one that allowed it. lacks says that a role is missing.
	since, asked, allowedAt time.Time
	lacks                   bool
	// used is when a request needed it.
	used time.Time
}

// errUnconfirmed is why a new denial is no answer: a role that is replaced, or a permission that is given
// in place of another, looks the same for a moment.
var errUnconfirmed = unavailable("the host cluster has just begun to deny the caller clusters, which may be a change that is not complete")

// ask asks the host cluster a question, unless it has answered it lately. What it does not know is an
// error: an answer without what a caller may see is worse than none. So is a denial that began before a
// time, or that no second review has confirmed, unless the caller may list nothing anyway.
func (p *permissions) ask(ctx context.Context, who *caller, q question, after time.Time) (answer, error) {
	if kept, ok := p.lookUp(q, after); ok {
		return kept, kept.doubt(q)
	}
	if err := p.limiter.Wait(ctx); err != nil {
		return answer{}, unavailable("too many permissions are reviewed at once")
	}
	now := p.clock.Now()
	review, err := p.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: p.spec(who, q)}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, unavailable("the host cluster can't be asked what the caller may see")
	}
	status := review.Status
	found := answer{allowed: status.Allowed && !status.Denied, since: now, asked: now, used: now, lacks: strings.Contains(status.Reason, "RBAC: ")}
	if !found.allowed && !status.Denied && status.EvaluationError != "" {
		return answer{}, unavailable("the host cluster does not know what the caller may see")
	}
	if found, err = p.keep(q, found, after); err != nil {
		return answer{}, err
	}
	return found, found.doubt(q)
}

// doubt returns an error if an answer is none yet.
func (a answer) doubt(q question) error {
	if a.allowed || q.subresource == "" || a.asked.Sub(a.since) >= a.confirms() {
		return nil
	}
	return errUnconfirmed
}

// confirms is how long after the first denial another one confirms it.
func (a answer) confirms() time.Duration {
	if a.lacks {
		return lacking
	}
	return settle
}

// lookUp returns an answer that is kept, as long as it is relied on.
func (p *permissions) lookUp(q question, after time.Time) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.kept[q]
	if !ok || !found.allowed && !found.since.After(after) {
		return answer{}, false
	}
	now := p.clock.Now()
	found.used = now
	p.kept[q] = found
	if found.doubt(q) != nil {
		return found, now.Sub(found.since) < found.confirms()
	}
	return found, now.Sub(found.asked) < p.lasts(q, found)
}

// lasts returns how long an answer is relied on: with many, longer than it takes to ask for all again.
func (p *permissions) lasts(q question, a answer) time.Duration {
	all := spared * time.Second * time.Duration(p.counts[a.allowed]) / perSecond
	if a.allowed || q.subresource == "" {
		return min(max(lasting, all), longest)
	}
	return max(denied, all)
}

// keep keeps an answer, with what is known from before.
func (p *permissions) keep(q question, found answer, after time.Time) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, was := p.kept[q]
	found.allowedAt = before.allowedAt
	switch {
	case found.allowed:
		found.allowedAt = found.asked
	case was && !before.allowed && before.since.After(after):
		found.since = before.since
	}
	p.look()
	if !was && len(p.kept) >= maxAnswers {
		return answer{}, unavailable("too many permissions are to be reviewed")
	}
	p.kept[q] = found
	return found, nil
}

// look counts what is kept from time to time, and drops what no one needs.
func (p *permissions) look() {
	now := p.clock.Now()
	if now.Sub(p.looked) < look {
		return
	}
	p.looked = now
	clear(p.counts)
	for q, a := range p.kept {
		unused, stranger := now.Sub(a.used), !a.allowed && q.subresource == "" // of whom there may be any number
		if unused >= forgotten || stranger && unused >= longest {
			delete(p.kept, q)
		} else if !stranger && (unused < remembered || !a.allowed) {
			p.counts[a.allowed]++
		}
	}
}

// spec returns a question as the host cluster understands it.
func (p *permissions) spec(who *caller, q question) authorizationv1.SubjectAccessReviewSpec {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range who.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	asked := authorizationv1.ResourceAttributes{Group: v1beta1.GroupName, Version: v1beta1.SchemeGroupVersion.Version, Verb: "list", Resource: "clusters"}
	if q.subresource != "" {
		asked.Verb, asked.Resource, asked.Subresource, asked.Name = "get", "clustersets", q.subresource, q.set
	}
	return authorizationv1.SubjectAccessReviewSpec{User: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra, ResourceAttributes: &asked}
}
