package feed

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

const (
	// parallel is how many reviews of one caller are asked at a time.
	parallel = 8
	// denied is how long an answer is relied on by which a caller sees less: that of few sets of
	// many costs little.
	denied = 6 * lasting
	// maxAnswers is how many answers of reviews are kept.
	maxAnswers = 1 << 16
)

// permissions asks the host cluster what callers may see: the same that it asks of a caller who
// lists the clusters of the registry.
type permissions struct {
	reviews authorizationv1client.SubjectAccessReviewInterface
	// hides says that the registry shows callers the clusters of their ClusterSets alone.
	hides bool
	// limiter bounds the reviews per second.
	limiter flowcontrol.RateLimiter
	kept    *utilcache.LRUExpireCache
}

func newPermissions(reviews authorizationv1client.SubjectAccessReviewInterface, hides bool, c clock.PassiveClock) *permissions {
	return &permissions{reviews: reviews, hides: hides, limiter: flowcontrol.NewTokenBucketRateLimiter(50, 100), kept: utilcache.NewLRUExpireCacheWithClock(maxAnswers, c)}
}

// question is what a review asks about a caller. An empty set asks about all clusters, and no
// subresource whether they may be listed at all.
type question struct{ caller, subresource, set string }

// sight is which clusters a caller sees: all of them, or those in sets.
type sight struct {
	all  bool
	sets []string
}

// shows reports whether a caller sees an entry.
func (s sight) shows(e *entry) bool {
	if s.all {
		return true
	}
	_, is := slices.BinarySearch(s.sets, e.Set)
	return is && e.Set != ""
}

// key tells apart who sees different clusters.
func (s sight) key() string {
	if s.all {
		return "*"
	}
	return strings.Join(s.sets, " ")
}

// of returns which of some entries a caller sees. An error says that it may list none, or that it
// is not known of all.
func (p *permissions) of(ctx context.Context, who *caller, entries []*entry) (sight, error) {
	may, err := p.may(ctx, who, question{who.key, "", ""})
	switch {
	case err != nil:
		return sight{}, err
	case !may:
		return sight{}, refusal{http.StatusForbidden, "the user of the token may not list clusters.clusterregistry.k8s.io in the host cluster"}
	case !p.hides:
		return sight{all: true}, nil
	}
	if all, err := p.may(ctx, who, question{who.key, "clusters", ""}); err != nil || all {
		return sight{all: all}, err
	}
	return p.ofSets(ctx, who, setsOf(entries))
}

// setsOf returns the ClusterSets that entries are in.
func setsOf(entries []*entry) []string {
	var out []string
	for _, e := range entries {
		if e.Set != "" {
			out = append(out, e.Set)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ofSets returns which of the sets a caller sees.
func (p *permissions) ofSets(ctx context.Context, who *caller, sets []string) (sight, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		out    sight
		failed error
		asking sync.WaitGroup
	)
	next := make(chan string)
	for range min(parallel, len(sets)) {
		asking.Go(func() {
			for set := range next {
				may, err := p.may(ctx, who, question{who.key, "clusters", set})
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
					cancel()
				}
				if may {
					out.sets = append(out.sets, set)
				}
				mu.Unlock()
			}
		})
	}
	for _, set := range sets {
		next <- set
	}
	close(next)
	asking.Wait()
	if failed != nil {
		return sight{}, failed
	}
	slices.Sort(out.sets)
	return out, nil
}

// may asks the host cluster a question, unless it has answered it lately. What it does not know is an
// error: an answer without what a caller may see is worse than none.
func (p *permissions) may(ctx context.Context, who *caller, q question) (bool, error) {
	if kept, ok := p.kept.Get(q); ok {
		return kept.(bool), nil
	}
	if err := p.limiter.Wait(ctx); err != nil {
		return false, unavailable("too many permissions are reviewed at once")
	}
	review, err := p.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: p.spec(who, q)}, metav1.CreateOptions{})
	if err != nil {
		return false, unavailable("the host cluster can't be asked what the caller may see")
	}
	allowed := review.Status.Allowed && !review.Status.Denied
	if !allowed && !review.Status.Denied && review.Status.EvaluationError != "" {
		return false, unavailable("the host cluster does not know what the caller may see")
	}
	lasts := lasting
	if !allowed {
		lasts = denied
	}
	p.kept.Add(q, allowed, lasts)
	return allowed, nil
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
