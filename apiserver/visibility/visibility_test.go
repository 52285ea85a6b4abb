package visibility

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/flowcontrol"
)

// asked is an authorizer that says which set it is asked about, and waits for the answer.
type asked struct {
	sets    chan string
	answers chan error
}

func newAsked() asked { return asked{make(chan string, 100), make(chan error)} }

func (a asked) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	a.sets <- attributes.GetName()
	select {
	case err := <-a.answers:
		return authorizer.DecisionNoOpinion, "", err
	case <-ctx.Done():
		return authorizer.DecisionNoOpinion, "", ctx.Err()
	}
}

func policy(a authorizer.UnconditionalAuthorizer) *Policy {
	return New(Config{Authorizer: a, Sets: func(context.Context) ([]string, error) { return nil, nil }, Periods: Periods{Cache: time.Minute, Recheck: time.Minute}})
}

func as(ctx context.Context, name string) context.Context {
	return genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: name})
}

// crowd makes requests at the same time, waits until they all wait for one answer, gives it,
// and returns how they ended.
func crowd(t *testing.T, p *Policy, a asked, answer error, request func() error) (ends []error) {
	t.Helper()
	const size = 20
	results := make(chan error, size)
	for range size {
		go func() { results <- request() }()
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		p.turns.mu.Lock()
		defer p.turns.mu.Unlock()
		for _, turn := range p.turns.users {
			return turn.waiting == size, nil
		}
		return false, nil
	}); err != nil {
		t.Fatalf("the requests don't wait for one: %v", err)
	}
	a.answers <- answer
	for range size {
		select {
		case err := <-results:
			ends = append(ends, err)
		case <-time.After(time.Minute):
			t.Fatalf("%d requests ended, and %d reviews were asked", len(ends), len(a.sets)+1)
		}
	}
	return ends
}

// TestOnce asks once for all requests that come at the same time, and gives none of them a
// failure to wait for again.
func TestOnce(t *testing.T) {
	ctx := as(t.Context(), "ann")
	for _, test := range []struct {
		reason  string
		answer  error
		request func(*Policy) error
	}{
		{"a view", nil, func(p *Policy) error { _, err := p.View(ctx); return err }},
		{"a view that fails", errors.New("no answer"), func(p *Policy) error { _, err := p.View(ctx); return err }},
		{"a decision", nil, func(p *Policy) error { _, err := p.Decide(ctx, "get", ""); return err }},
		{"a decision that fails", errors.New("no answer"), func(p *Policy) error { _, err := p.Decide(ctx, "get", ""); return err }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			a := newAsked()
			p := policy(a)
			for _, err := range crowd(t, p, a, test.answer, func() error { return test.request(p) }) {
				if (err != nil) != (test.answer != nil) || err != nil && !apierrors.IsServiceUnavailable(err) {
					t.Errorf("ended with %v", err)
				}
			}
			if len(a.sets) != 1 || len(p.turns.users) != 0 {
				t.Errorf("asked %d times, and %d turns are left", len(a.sets), len(p.turns.users))
			}
		})
	}
}

// TestAlone has one request of a caller not wait beyond its time for another, nor answer for it.
func TestAlone(t *testing.T) {
	a := newAsked()
	p := policy(a)
	var wait sync.WaitGroup
	first, cancel := context.WithCancel(as(t.Context(), "ann"))
	wait.Go(func() { _, _ = p.View(first) })
	<-a.sets
	short, end := context.WithTimeout(as(t.Context(), "ann"), time.Millisecond)
	defer end()
	if _, err := p.View(short); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("who waits too long gets %v", err)
	}
	result := make(chan error)
	go func() { _, err := p.View(as(t.Context(), "ann")); result <- err }()
	cancel()
	wait.Wait()
	if <-a.sets; len(a.sets) != 0 {
		t.Errorf("asked %d times more", len(a.sets))
	}
	a.answers <- nil
	if err := <-result; err != nil {
		t.Errorf("the first one's end is that of another: %v", err)
	}
}

// TestShare lets a caller whose requests name many sets have one review at a time, so that
// others have theirs.
func TestShare(t *testing.T) {
	a := newAsked()
	p := policy(a)
	p.Limiter = flowcontrol.NewFakeAlwaysRateLimiter()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() { _, _ = p.Decide(as(ctx, "eve"), "create", fmt.Sprintf("random-%d", i)) })
	}
	<-a.sets
	wait.Go(func() { _, _ = p.Decide(as(ctx, "ann"), "get", "blue") })
	if of := <-a.sets; of != "" || len(a.sets) != 0 {
		t.Errorf("asked about %q, and %d more", of, len(a.sets))
	}
	cancel()
	wait.Wait()
}

// TestCredentials reviews a user once, whatever credentials it has and however many.
func TestCredentials(t *testing.T) {
	const size = 20
	var told []string
	p := policy(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		told = append(told, fmt.Sprint(a.GetUser().GetName(), a.GetUser().GetUID(), a.GetUser().GetGroups(), a.GetUser().GetExtra()))
		return authorizer.DecisionAllow, "", nil
	}))
	with := func(extra map[string][]string) {
		ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "eve", UID: "1", Groups: []string{"team"}, Extra: extra})
		if _, err := p.View(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Decide(ctx, "create", ""); err != nil {
			t.Fatal(err)
		}
	}
	for i := range size {
		n := []string{fmt.Sprint(i)}
		with(map[string][]string{user.CredentialIDKey: n, "authentication.kubernetes.io/pod-name": n, "authentication.kubernetes.io/node-name": n})
	}
	if want := []string{"eve1[team] map[]", "eve1[team] map[]"}; !slices.Equal(told, want) {
		t.Errorf("asked about %q", told)
	}
	told = nil
	with(map[string][]string{user.CredentialIDKey: {"0"}, "scopes.authorization.openshift.io": {"user:info"}})
	if want := []string{"eve1[team] map[scopes.authorization.openshift.io:[user:info]]", "eve1[team] map[scopes.authorization.openshift.io:[user:info]]"}; !slices.Equal(told, want) {
		t.Errorf("of a credential that may do less, asked about %q", told)
	}
}

// TestFairShare has a user with hundreds of credentials leave others their share of reviews,
// also where an authenticator says something else of each credential.
func TestFairShare(t *testing.T) {
	const size, sets = 200, 60
	for _, extra := range []string{user.CredentialIDKey, "example.com/session"} {
		t.Run(extra, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := policy(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
					return authorizer.DecisionNoOpinion, "", nil
				}))
				p.Sets = func(context.Context) (names []string, err error) {
					for i := range sets {
						names = append(names, fmt.Sprintf("set-%d", i))
					}
					return names, nil
				}
				p.Periods.Cache, p.Limiter = 10*time.Second, flowcontrol.NewTokenBucketRateLimiter(50, 200)
				ctx, cancel := context.WithCancel(t.Context())
				var wait sync.WaitGroup
				for i := range size {
					eve := genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "eve", Extra: map[string][]string{extra: {fmt.Sprint(i)}}})
					wait.Go(func() {
						for ctx.Err() == nil {
							_, _ = p.View(eve)
							_, _ = p.Decide(eve, "create", fmt.Sprintf("random-%d", i))
							time.Sleep(time.Second)
						}
					})
				}
				time.Sleep(10 * time.Second)
				// Eve has eight reviews of sets waiting, and one for a decision.
				for _, request := range []func() error{
					func() error { _, err := p.View(as(ctx, "ann")); return err },
					func() error { _, err := p.Decide(as(ctx, "ann"), "get", "set-7"); return err },
					func() error { _, err := p.Decide(as(ctx, "bob"), "get", "set-7"); return err },
				} {
					began := time.Now()
					if err := request(); err != nil || time.Since(began) > 5*time.Second {
						t.Errorf("after %s: %v", time.Since(began), err)
					}
				}
				cancel()
				wait.Wait()
			})
		})
	}
}

// TestUnlisted answers 503 when the sets can't be listed.
func TestUnlisted(t *testing.T) {
	a := newAsked()
	p := policy(a)
	p.Sets = func(context.Context) ([]string, error) { return nil, apierrors.NewTimeoutError("etcd", 1) }
	go func() { a.answers <- nil }()
	_, err := p.View(as(t.Context(), "ann"))
	// Not by errors.As: a server goes by the outermost error.
	if status, is := err.(apierrors.APIStatus); !is || status.Status().Code != 503 {
		t.Errorf("got %v", err)
	}
}

// TestPatience ends requests whose reviews take too long, and has the next ones continue with
// what was found, however long that is kept otherwise: no review is asked twice.
func TestPatience(t *testing.T) {
	const size = 4000
	for _, test := range []struct {
		reason  string
		allowed func(set string) bool
		limit   time.Duration
		tries   int
	}{
		{"a caller that sees nothing", func(string) bool { return false }, 60 * time.Second, 3},
		{"one that sees all", func(set string) bool { return set != "" }, 60 * time.Second, 3},
		{"requests with less time", func(set string) bool { return strings.HasSuffix(set, "7") }, 20 * time.Second, 8},
		{"a watch, which has no limit", func(string) bool { return false }, 0, 3},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				asked := map[string]int{}
				p := policy(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					mu.Lock()
					defer mu.Unlock()
					asked[a.GetName()]++
					if test.allowed(a.GetName()) {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				}))
				p.Sets = func(context.Context) (names []string, err error) {
					for i := range size {
						names = append(names, fmt.Sprintf("set-%d", i))
					}
					return names, nil
				}
				p.Periods.Cache, p.Limiter = 10*time.Second, flowcontrol.NewTokenBucketRateLimiter(50, 200)
				request := func() (View, error) {
					ctx, end := as(t.Context(), "ann"), func() {}
					if test.limit > 0 {
						ctx, end = context.WithTimeout(ctx, test.limit)
					}
					defer end()
					return p.View(ctx)
				}
				for range test.tries - 1 {
					began := time.Now()
					_, err := request()
					if took := time.Since(began); took > 30*time.Second || test.limit > 0 && took > test.limit/2 {
						t.Errorf("it took %s", took)
					}
					seconds, retried := apierrors.SuggestsClientDelay(err)
					if !apierrors.IsServiceUnavailable(err) || !retried || seconds != 1 || !strings.Contains(err.Error(), "are not complete after") {
						t.Fatalf("after %d reviews, who has to try again gets %v", len(asked), err)
					}
					time.Sleep(time.Second)
				}
				v, err := request()
				if err != nil {
					t.Fatalf("after %d reviews: %v", len(asked), err)
				}
				// As when it is recorded what the caller sees.
				if again, err := request(); err != nil || !again.Same(v) {
					t.Errorf("right after that: %v", err)
				}
				for set, times := range asked {
					if times > 1 || set != "" && v.sets.Has(set) != test.allowed(set) {
						t.Errorf("asked %d times about %q, and it is seen: %t", times, set, v.sets.Has(set))
					}
				}
				if len(asked) != size+1 {
					t.Errorf("asked about %d", len(asked))
				}
			})
		})
	}
}

// TestLasts keeps a review that denies for long enough for all others to be asked.
func TestLasts(t *testing.T) {
	allowed, no := answer{allowed: true}, answer{}
	for _, test := range []struct {
		reason        string
		cache         time.Duration
		remote        bool
		sets          int64
		allowed, want time.Duration
	}{
		{"few sets", 10 * time.Second, true, 10, 10 * time.Second, time.Minute},
		{"many sets", 10 * time.Second, true, 10000, 10 * time.Second, 800 * time.Second},
		{"many sets, and the server itself reviews", 10 * time.Second, false, 10000, 10 * time.Second, time.Minute},
		{"nothing is kept", 0, true, 10000, 0, 0},
	} {
		p := policy(newAsked())
		p.Periods.Cache = test.cache
		p.sets.Store(test.sets)
		if test.remote {
			p.Limiter = flowcontrol.NewTokenBucketRateLimiter(50, 200)
		}
		if got, denied := p.lasts(allowed), p.lasts(no); got != test.allowed || denied != test.want {
			t.Errorf("%s: %s and %s", test.reason, got, denied)
		}
	}
}
