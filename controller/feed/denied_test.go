package feed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// in returns what puts a cluster into a set.
func in(set string) func(*v1beta1.Cluster) {
	return func(c *v1beta1.Cluster) { c.Spec.ClusterSet = set }
}

// permits has the host cluster permit to list, and what it is told: sets, or "" for all of them.
func (b *bench) permits(sets ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		allowed := s.ResourceAttributes.Resource == "clusters"
		for _, set := range sets {
			allowed = allowed || set == "" || set == s.ResourceAttributes.Name
		}
		return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}, nil
	}
}

// never asks every second for a while, and expects no answer without any of these clusters.
func (b *bench) never(reason, want string) {
	b.t.Helper()
	for second := range 150 {
		if got := b.ask("/v1/clusters.json"); got.Code == http.StatusOK && b.names(got) != want {
			b.t.Fatalf("%s: after %d seconds, it has %q", reason, second, b.names(got))
		}
		b.time.Step(time.Second)
	}
	if got := b.names(b.ask("/v1/clusters.json")); got != want {
		b.t.Errorf("%s: %q", reason, got)
	}
}

// TestGranted expects no cluster to be left out of an answer for a moment where the permissions of its
// caller, or its set, are changed in such an order that it may see it all the time.
func TestGranted(t *testing.T) {
	keeps := map[string]string{"all is granted for a while": "x-d"} // and east
	for reason, change := range map[string]func(*bench){
		"a set is granted, and the cluster moved to it": func(b *bench) {
			b.permits("a", "b")
			b.time.Step(time.Second)
			b.put(member("east", in("b")))
		},
		"the former one is taken away at the same time": func(b *bench) {
			b.permits("b")
			b.put(member("east", in("b")))
		},
		"it is moved twice": func(b *bench) {
			b.permits("a", "c")
			b.put(member("east", in("b")))
			b.put(member("east", in("c")))
		},
		"all is granted, and the cluster in no set": func(b *bench) {
			b.permits("")
			b.put(member("east", in("")))
		},
		"all is granted for a while": func(b *bench) {
			b.time.Step(settle)
			b.ask("/v1/clusters.json") // of all, it is asked again
			b.time.Step(denied - 2*settle)
			b.put(member("x-d", in("d")))
			b.askTwice("token")
			b.permits("")
			b.time.Step(settle + time.Second)
			b.ask("/v1/clusters.json")
			b.permits("a", "d")
		},
		"a role is made again": func(b *bench) {
			b.permits()
			b.time.Step(lasting)
			b.ask("/v1/clusters.json")
			b.time.Step(time.Second)
			b.permits("a")
		},
	} {
		b := newBench(t, func(c *Config) { c.Hides = true })
		b.put(member("east", in("a")), member("x-b", in("b")), member("x-c", in("c")))
		b.permits("a")
		b.askTwice("token")
		if got := b.names(b.ask("/v1/clusters.json")); got != "east" {
			t.Fatalf("%s: before: %q", reason, got)
		}
		b.time.Step(denied - settle) // denials are asked for again soon
		b.ask("/v1/clusters.json")
		change(b)
		for second := range 150 {
			if got := b.ask("/v1/clusters.json"); got.Code == http.StatusOK && (!strings.Contains(got.Body.String(), `"east"`) || !strings.Contains(got.Body.String(), keeps[reason])) {
				t.Fatalf("%s: after %d seconds, it has %q", reason, second, b.names(got))
			}
			b.time.Step(time.Second)
		}
		if got := b.ask("/v1/clusters.json"); got.Code != http.StatusOK {
			t.Errorf("%s: %d, %s", reason, got.Code, got.Body)
		}
	}
}

// TestNarrowed expects what a caller may no longer see to be in no answer, and the answer without it to
// come.
func TestNarrowed(t *testing.T) {
	for reason, test := range map[string]struct {
		before []string
		change func(*bench)
		want   string
	}{
		"a set is taken away":                   {[]string{"a", "b"}, func(b *bench) { b.permits("a") }, "east"},
		"all is taken away":                     {[]string{""}, func(b *bench) { b.permits() }, ""},
		"a cluster is moved where it can't see": {[]string{"a"}, func(b *bench) { b.put(member("east", in("b"))) }, ""},
		"sets instead of all":                   {[]string{""}, func(b *bench) { b.permits("b") }, "west"},
	} {
		b := newBench(t, func(c *Config) { c.Hides = true })
		b.put(member("east", in("a")), member("west", in("b")))
		b.permits(test.before...)
		b.askTwice("token")
		test.change(b)
		b.time.Step(lasting)
		b.never(reason, test.want)
	}
}

// TestRoleMissing expects a denial for want of a role to be none for a while: helm and kubectl replace
// make roles again.
func TestRoleMissing(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Hides = true })
	b.put(member("east"))
	b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: s.ResourceAttributes.Resource == "clusters", Reason: "webhook: no opinion\nRBAC: clusterrole.rbac.authorization.k8s.io \"team\" not found"}, nil
	}
	for range 5 {
		if got := b.ask("/v1/clusters.json"); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%d, %s", got.Code, got.Body)
		}
		b.time.Step(settle)
	}
	b.time.Step(settle)
	if got := b.ask("/v1/clusters.json"); got.Code != http.StatusOK || b.names(got) != "" {
		t.Errorf("a minute later: %d, %s", got.Code, got.Body)
	}
}

// pace is a limiter by the time of a test. What is left is negative while requests wait, and one that
// would wait for too long has no answer.
type pace struct {
	flowcontrol.RateLimiter
	mu   sync.Mutex
	left int
}

var errLate = errors.New("late")

// Wait implements flowcontrol.RateLimiter.
func (p *pace) Wait(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left <= -perSecond*int(waiting/time.Second) {
		return errLate
	}
	p.left--
	return nil
}

// TestManySets expects each of many callers that see few of many sets to be answered nearly each time it
// asks, though they can't be reviewed for all at once.
func TestManySets(t *testing.T) {
	for _, of := range []struct{ callers, sets, mine, every int }{{40, 100, 1, 60}, {2, 4000, 1, 60}, {1, 2500, 2500, 10}} {
		b := newBench(t, func(c *Config) { c.Hides = true })
		limiter := &pace{}
		b.permissions.limiter = limiter
		for i := range of.sets {
			b.put(member(fmt.Sprintf("c%d", i), in(fmt.Sprintf("set-%04d", i)), func(c *v1beta1.Cluster) { c.Spec.Endpoints = nil }))
		}
		for i := range of.callers {
			b.tokens[fmt.Sprint(i)] = user(fmt.Sprintf("set-%04d", i), audience)
		}
		b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: s.ResourceAttributes.Resource == "clusters" || s.ResourceAttributes.Name != "" && (s.ResourceAttributes.Name == s.User || of.mine > 1)}, nil
		}
		answered, late := 0, 0
		for second := range 1200 {
			limiter.left = min(limiter.left+perSecond, burst)
			for i := range of.callers {
				if second%of.every != i {
					continue
				}
				got := b.from(fmt.Sprintf("10.0.%d.1:1", i)).askAs(fmt.Sprint(i), "/v1/clusters.json")
				switch {
				case second < 600:
				case got.Code == http.StatusOK:
					answered++
				default:
					late++
				}
			}
			b.time.Step(time.Second)
		}
		if answered == 0 || late > answered/10 {
			t.Errorf("%+v: %d are answered, %d are late", of, answered, late)
		}
	}
}

// TestManyCallers expects callers to change nothing for another one, however many there are: what is taken
// away from it is taken away within a minute, and it is answered.
func TestManyCallers(t *testing.T) {
	b := newBench(t)
	b.put(member("east"))
	b.permissions.limiter = flowcontrol.NewFakeAlwaysRateLimiter()
	lists := func(callers int) (allowed bool) {
		t.Helper()
		for i := range callers {
			found, err := b.permissions.ask(t.Context(), &caller{key: fmt.Sprint(i)}, question{caller: fmt.Sprint(i)}, time.Time{})
			if err != nil {
				t.Fatalf("caller %d of %d: %v", i, callers, err)
			}
			if allowed = found.allowed; i%perSecond == 0 {
				b.time.Step(time.Second)
			}
		}
		return allowed
	}
	if !lists(10_000) || b.ask("/v1/flux").Code != http.StatusOK {
		t.Fatal("not all may list")
	}
	b.may = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{}, nil
	}
	b.time.Step(longest)
	if got := b.ask("/v1/flux"); got.Code != http.StatusForbidden {
		t.Errorf("the permission was taken away: %d", got.Code)
	}
	b.time.Step(forgotten)
	if lists(maxAnswers+perSecond) || b.permissions.counts[false] > 0 {
		t.Fatalf("all may list, or %d denials make others last longer", b.permissions.counts[false])
	}
	b.permits("")
	b.time.Step(longest)
	b.tokens["new"] = user("new", audience)
	for _, token := range []string{"token", "new"} {
		if got := b.askAs(token, "/v1/flux"); got.Code != http.StatusOK {
			t.Errorf("%s: the permission was given: %d, %s", token, got.Code, got.Body)
		}
	}
}
