package feed

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

const (
	// parallel is how many reviews of one caller are asked at a time.
	parallel = 8
	// denied is how long an answer is relied on by which a caller sees less, at least: that of few
	// sets of many costs little.
	denied = 6 * lasting
	// longest is how long any other answer is relied on at most, however many there are of others: what
	// is taken away is taken away soon.
	longest = time.Minute
	// lacking is how long a denial must last for a role that is missing: one that is made again
	// comes back.
	lacking = time.Minute
	// forgotten is when a denial counts as a new one that no request has needed since.
	forgotten = 2 * time.Hour
	// maxAnswers is how many answers of reviews are kept.
	maxAnswers = 1 << 16
	// perSecond is how many reviews there are, burst how many at once, and spared how much longer than
	// it takes to ask for all answers again, at that rate, these are relied on.
	perSecond, burst, spared = 50, 100, 4
)

// permissions asks the host cluster what callers may see: the same that it asks of a caller who
// lists the clusters of the registry.
type permissions struct {
	reviews authorizationv1client.SubjectAccessReviewInterface
	// hides says that the registry shows callers the clusters of their ClusterSets alone.
	hides bool
	// limiter bounds the reviews per second.
	limiter flowcontrol.RateLimiter
	clock   clock.PassiveClock

	mu   sync.Mutex
	kept map[question]answer
	// counts are how many answers of each kind were kept when they were looked through.
	counts map[bool]int
	looked time.Time
}

func newPermissions(reviews authorizationv1client.SubjectAccessReviewInterface, hides bool, c clock.PassiveClock) *permissions {
	return &permissions{reviews: reviews, hides: hides, clock: c, limiter: flowcontrol.NewTokenBucketRateLimiter(perSecond, burst), kept: map[question]answer{}, counts: map[bool]int{}}
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
	lists, err := p.ask(ctx, who, question{who.key, "", ""}, time.Time{})
	switch {
	case err != nil:
		return sight{}, err
	case !lists.allowed:
		return sight{}, refusal{http.StatusForbidden, "the user of the token may not list clusters.clusterregistry.k8s.io in the host cluster"}
	case !p.hides:
		return sight{all: true}, nil
	}
	all, doubt := p.ask(ctx, who, question{who.key, "clusters", ""}, time.Time{})
	switch {
	case all.allowed:
		return sight{all: true}, nil
	case doubt != nil && !errors.Is(doubt, errUnconfirmed):
		return sight{}, doubt
	}
	// What else is to be confirmed is asked with it.
	out, err := p.ofSets(ctx, who, setsOf(entries), all.allowedAt)
	if err == nil {
		err = doubt
	}
	if err == nil {
		err = p.sawMove(ctx, who, out, entries)
	}
	return out, err
}

// sawMove returns an error if an entry that a caller may have seen in another set was moved to one that
// it may not see, unless it is denied that since: what was granted before the move may be news.
func (p *permissions) sawMove(ctx context.Context, who *caller, sees sight, entries []*entry) error {
	for _, e := range entries {
		if len(e.former) == 0 || sees.shows(e) || !slices.ContainsFunc(e.former, func(set string) bool { return p.saw(question{who.key, "clusters", set}) }) {
			continue
		}
		now, err := p.ask(ctx, who, question{who.key, "clusters", e.Set}, e.moved)
		if err == nil && now.allowed {
			err = errUnconfirmed // the next request has it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// saw reports whether a caller was ever permitted something.
func (p *permissions) saw(q question) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.kept[q].allowedAt.IsZero()
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

// ofSets returns which of the sets a caller sees, by denials that began after a time.
func (p *permissions) ofSets(ctx context.Context, who *caller, sets []string, after time.Time) (sight, error) {
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
				found, err := p.ask(ctx, who, question{who.key, "clusters", set}, after)
				mu.Lock()
				if err != nil && (failed == nil || errors.Is(failed, errUnconfirmed)) {
					failed = err
				}
				if err != nil && !errors.Is(err, errUnconfirmed) {
					cancel()
				}
				if found.allowed {
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
