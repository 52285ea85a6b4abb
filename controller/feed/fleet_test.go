package feed

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
)

// unanswered expects a request to be answered with 503, and when to ask again.
func unanswered(t *testing.T, b *bench, reason string) {
	t.Helper()
	for path := range forms {
		if got := b.ask(path); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "10" || strings.Contains(got.Body.String(), "east") {
			t.Errorf("%s: %s: %d %v, %.300s", reason, path, got.Code, got.Header(), got.Body)
		}
	}
}

// TestIncomplete expects what is not known of all clusters to be an error, since callers delete what
// an answer lacks.
func TestIncomplete(t *testing.T) {
	broken := errors.New("broken")
	for reason, test := range map[string]struct{ breaks, mends func(*bench) }{
		"the registry is not read": {func(b *bench) { b.synced = false }, func(b *bench) { b.synced = true }},
		"it can't be watched":      {func(b *bench) { b.trouble = broken }, func(b *bench) { b.trouble = nil }},
		"tokens can't be reviewed": {func(b *bench) { b.tokensFail = broken }, func(b *bench) { b.tokensFail = nil }},
		"permissions can't be reviewed": {func(b *bench) {
			b.may = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
				return authorizationv1.SubjectAccessReviewStatus{}, broken
			}
		}, nil},
		"an authorizer does not know": {func(b *bench) {
			b.may = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
				return authorizationv1.SubjectAccessReviewStatus{EvaluationError: "webhook: timeout"}, nil
			}
		}, nil},
	} {
		b := newBench(t)
		may := b.may
		b.put(member("east"), member("west"))
		test.breaks(b)
		unanswered(t, b, reason)
		if b.may = may; test.mends != nil {
			test.mends(b)
		}
		if got := b.names(b.ask("/v1/clusters.json")); got != "east west" {
			t.Errorf("%s no longer: %q", reason, got)
		}
	}
}

// TestOneSetFails expects a caller of whose sets one review fails to be told of no set.
func TestOneSetFails(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Hides = true })
	for i := range 20 {
		b.put(member(fmt.Sprintf("east-%d", i), func(c *v1beta1.Cluster) { c.Spec.ClusterSet = fmt.Sprintf("set-%d", i) }))
	}
	b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		if s.ResourceAttributes.Name == "set-7" {
			return authorizationv1.SubjectAccessReviewStatus{}, errors.New("broken")
		}
		return authorizationv1.SubjectAccessReviewStatus{Allowed: s.ResourceAttributes.Resource == "clusters" || s.ResourceAttributes.Name != ""}, nil
	}
	unanswered(t, b, "one of 20 sets")
}

// TestNotAskedYet expects the first answer to wait for what is not known yet of the addresses, and
// not for long.
func TestNotAskedYet(t *testing.T) {
	b := newBench(t)
	cluster := member("east")
	_ = b.entries.Add(cluster)
	b.changed(cluster)
	unanswered(t, b, "its address is not verified yet")
	b.put(cluster)
	if got := b.records(b.ask("/v1/clusters.json")); len(got) != 1 || !got[0].Verified {
		t.Errorf("%+v", got)
	}
	later := member("west")
	_ = b.entries.Add(later)
	b.changed(later)
	if got := b.records(b.ask("/v1/clusters.json")); len(got) != 2 || got[1].Address != "" || got[1].Reason != "NotAsked" {
		t.Errorf("one that was added later is waited for: %+v", got)
	}

	b = newBench(t)
	_ = b.entries.Add(cluster)
	b.changed(cluster)
	unanswered(t, b, "its address is not verified yet")
	b.time.Step(patience)
	if got := b.records(b.ask("/v1/clusters.json")); len(got) != 1 || got[0].Address != "" {
		t.Errorf("%+v", got)
	}
}

// TestGone expects clusters that are deleted to leave answers, and more than half of them at once to
// be a reason to ask a person.
func TestGone(t *testing.T) {
	b := newBench(t)
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("c%d", i))
		b.put(member(names[i]))
	}
	all := strings.Join(names, " ")
	expect := func(reason, want string) {
		t.Helper()
		if got := b.names(b.ask("/v1/clusters.json")); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
	expect("all", all)
	b.drop("c0")
	expect("just deleted", all)
	b.time.Step(5 * time.Second)
	b.put(member("c0"))
	b.time.Step(settle)
	expect("made again", all)
	b.drop("c0")
	b.time.Step(settle)
	expect("deleted", strings.Join(names[1:], " "))

	// As the informer does when the registry was emptied: one after the other, and not at one time.
	for _, name := range names[1:7] {
		b.drop(name)
		b.time.Step(100 * time.Millisecond)
	}
	for range 3 {
		unanswered(t, b, "six of nine")
		b.time.Step(time.Hour)
	}
	if _, err := b.fleet.complete(); err == nil || !strings.Contains(err.Error(), `more than half of the clusters are gone at once, such as "c1", "c2", "c3", "c4", "c5"`) {
		t.Error(err)
	}
	b.put(member("c1"), member("c2"))
	expect("two of them are back", strings.Join(slices.Concat(names[1:3], names[7:]), " "))
}

// TestAddresses expects addresses that are verified, and where credentials of an allowed provider may
// go, and no others. The cluster is listed all the same.
func TestAddresses(t *testing.T) {
	unreached := probe.Result{Outcome: probe.Failed, Reason: probe.ReasonTimedOut, Message: "It does not answer."}
	refused := probe.Result{Outcome: probe.NotAsked, Reason: probe.ReasonAddressRefused}
	moved := func(to string) func(*v1beta1.Cluster) {
		return func(c *v1beta1.Cluster) { c.Generation, c.Spec.Endpoints[0].URL = 2, to }
	}
	for reason, test := range map[string]struct {
		change        func(*v1beta1.Cluster)
		result        probe.Result
		address, says string
	}{
		"moved, and verified":             {moved("https://new.example.com"), probe.Result{Outcome: probe.Ready}, "https://new.example.com", ""},
		"moved, and not reached":          {moved("https://new.example.com"), unreached, "https://east.example.com:6443", "LastVerified"},
		"moved to where no one may be":    {moved("https://new.example.com"), refused, "", "AddressRefused"},
		"moved to where no secret may go": {moved("https://new.example.org"), probe.Result{Outcome: probe.Ready}, "", "HostNotAllowed"},
		"a provider that is not allowed":  {func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Type = "other" }, unreached, "", "ProviderNotAllowed"},
		"no access":                       {func(c *v1beta1.Cluster) { c.Spec.Access = nil }, unreached, "", "NoAccess"},
		"access of people":                {func(c *v1beta1.Cluster) { c.Spec.Access[0].Audience = v1beta1.AudienceUser }, unreached, "", "NoAccess"},
		"no endpoint":                     {func(c *v1beta1.Cluster) { c.Spec.Endpoints = nil }, unreached, "", "NoEndpoint"},
		"a proxy":                         {func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://proxy.example.com" }, unreached, "", "EndpointUnsupported"},
		"another name":                    {func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "other" }, unreached, "", "EndpointUnsupported"},
		"another cluster answers": {func(c *v1beta1.Cluster) {
			c.Status = &v1beta1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1beta1.ConditionIdentityVerified, Status: metav1.ConditionFalse}}}
		}, unreached, "", "IdentityMismatch"},
		"another provider, and not reached": {func(c *v1beta1.Cluster) {
			moved("https://new.example.com")(c)
			c.Spec.Access[0].Provider.Type = "plain"
		}, unreached, "", "NotVerified"},
		"another cluster of the name": {func(c *v1beta1.Cluster) {
			moved("https://new.example.com")(c)
			c.UID = "another"
		}, unreached, "", "NotVerified"},
	} {
		b := newBench(t)
		b.put(member("east"))
		if got := b.records(b.ask("/v1/clusters.json"))[0]; got.Address != "https://east.example.com:6443" || !got.Verified || got.CA == "" || got.Provider != "sso" {
			t.Fatalf("before: %+v", got)
		}
		b.found["https://new.example.com"], b.found["https://new.example.org"] = test.result, test.result
		b.put(member("east", test.change))
		got := b.records(b.ask("/v1/clusters.json"))
		if len(got) != 1 || got[0].Address != test.address || got[0].Reason != test.says || got[0].Verified != (test.says == "") || (got[0].CA != "") != (test.address != "") || (got[0].Provider != "") != (test.address != "") {
			t.Errorf("%s: %+v, want %q, %q", reason, got, test.address, test.says)
		}
	}

	b := newBench(t)
	b.found["https://east.example.com:6443"] = unreached
	b.put(member("east"))
	b.time.Step(patience)
	b.ask("/v1/clusters.json") // from when it is waited
	b.time.Step(patience)
	if got := b.records(b.ask("/v1/clusters.json")); len(got) != 1 || got[0].Address != "" || got[0].Reason != "NotVerified" {
		t.Errorf("never reached: %+v", got)
	}
	if got := b.ask("/v1/prometheus"); got.Body.String() != "[\n]\n" {
		t.Errorf("Prometheus is told of %s", got.Body)
	}
}

// slow is a lister whose first read takes long.
type slow struct {
	lister.ClusterLister
	reading, goOn chan struct{}
	first         atomic.Bool
}

// Get implements lister.ClusterLister.
func (s *slow) Get(name string) (*v1beta1.Cluster, error) {
	cluster, err := s.ClusterLister.Get(name)
	if s.first.CompareAndSwap(false, true) {
		close(s.reading)
		<-s.goOn
	}
	return cluster, err
}

// TestChangedTwice expects of two that look at an entry at once, before and after it changes, the one that
// has seen the change to have the last word.
func TestChangedTwice(t *testing.T) {
	b := newBench(t)
	b.put(member("east"))
	slow := &slow{ClusterLister: b.fleet.clusters, reading: make(chan struct{}), goOn: make(chan struct{})}
	b.fleet.clusters = slow
	var looking sync.WaitGroup
	looking.Go(func() { b.fleet.changed("east") })
	<-slow.reading
	_ = b.entries.Update(member("east", func(c *v1beta1.Cluster) { c.Spec.ClusterSet = "batch" }))
	second := make(chan struct{})
	looking.Go(func() {
		b.fleet.changed("east")
		close(second)
	})
	select {
	case <-second:
	case <-time.After(50 * time.Millisecond): // it waits for the first
	}
	close(slow.goOn)
	looking.Wait()
	if got := b.records(b.ask("/v1/clusters.json"))[0].ClusterSet; got != "batch" {
		t.Errorf("it is in the set %q", got)
	}
}
