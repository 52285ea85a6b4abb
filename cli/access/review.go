package access

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// atOnce is how many reviews are asked at a time.
const atOnce = 8

// reviewer asks the API server that authorizes.
type reviewer struct {
	client authorizationv1client.AuthorizationV1Interface
	// who is asked about, and self whether that is the one who asks: no right is needed
	// for that.
	who  who
	self bool
}

// review returns whether something is allowed. Only a clear yes counts. The error is the
// server's own.
func (r reviewer) review(ctx context.Context, right Right) (bool, error) {
	if r.self {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right.attributes()}}
		review, err := r.client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: r.who.user, UID: r.who.uid, Groups: r.who.groups, Extra: r.who.extra, ResourceAttributes: right.attributes(),
	}}
	review, err := r.client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// judge decides on rights by reviews, or by RBAC alone where there are none.
type judge struct {
	// reviewer is nil where reviews can't be had, and policy where roles and bindings
	// can't be read: never both.
	reviewer *reviewer
	policy   *policy

	lock    sync.Mutex
	allowed map[Right]bool
	// asked are the rights in the order in which they were asked for.
	asked []Right
}

// ask decides on rights.
func (j *judge) ask(ctx context.Context, rights []Right) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, right := range rights {
		j.asked = append(j.asked, right)
		group.Go(func() error {
			allowed, err := j.decide(ctx, right)
			j.lock.Lock()
			defer j.lock.Unlock()
			j.allowed[right] = allowed
			return err
		})
	}
	return group.Wait()
}

func (j *judge) decide(ctx context.Context, right Right) (bool, error) {
	if j.reviewer == nil {
		return j.policy.allows(right), nil
	}
	return j.reviewer.review(ctx, right)
}

// those returns which of some verbs are allowed, as rights that a function makes of them.
func (j *judge) those(verbs []string, right func(verb string) Right) []string {
	out := []string{}
	for _, verb := range verbs {
		if j.allowed[right(verb)] {
			out = append(out, verb)
		}
	}
	return out
}

// explained returns the bindings that give what is allowed, none where they are not known.
func (j *judge) explained() []Grant {
	if j.policy == nil {
		return nil
	}
	return j.policy.explain(j.granted())
}

func (j *judge) granted() (out []Right) {
	for _, right := range j.asked {
		if j.allowed[right] {
			out = append(out, right)
		}
	}
	return out
}

// differing returns the rights that reviews allow and no binding gives, and those that a
// binding gives and reviews refuse.
func (j *judge) differing() (allowed, refused []string) {
	if j.policy == nil || j.reviewer == nil {
		return nil, nil
	}
	for _, right := range j.asked {
		switch given := j.policy.allows(right); {
		case j.allowed[right] && !given:
			allowed = append(allowed, right.String())
		case given && !j.allowed[right]:
			refused = append(refused, right.String())
		}
	}
	return allowed, refused
}
