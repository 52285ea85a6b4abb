package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

// host is a host cluster that has the Lease of a controller.
type host struct {
	*fake.Clientset
	t *testing.T
}

func newHost(t *testing.T) host {
	t.Helper()
	return host{fake.NewSimpleClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "hub-controller"}}), t}
}

// starts returns a server of a process that is started in the host cluster, of a registry that has
// clusters, and that has looked once.
func (h host) starts(clusters ...*v1beta1.Cluster) *bench {
	h.t.Helper()
	b := newBench(h.t, func(c *Config) {
		c.Record = Record{Leases: h.CoordinationV1().Leases("registries"), Namespace: "registries", Name: "hub-controller"}
	})
	b.fleet.read = false
	b.put(clusters...)
	_ = b.recall(h.t.Context())
	return b
}

// says writes the annotation.
func (h host) says(value string) {
	h.t.Helper()
	if err := (Record{Leases: h.CoordinationV1().Leases("registries"), Name: "hub-controller"}).write(h.t.Context(), value); err != nil {
		h.t.Fatal(err)
	}
}

func members(n int) (out []*v1beta1.Cluster) {
	for i := range n {
		out = append(out, member(fmt.Sprintf("c%03d", i)))
	}
	return out
}

// TestRestart expects a process that is started to compare what there is with what was answered before
// it: that it was started says nothing of what was lost.
func TestRestart(t *testing.T) {
	for reason, test := range map[string]struct {
		before, now int
		answered    bool
	}{
		"nothing is lost":             {10, 10, true},
		"less than half is lost":      {10, 6, true},
		"most is lost":                {10, 4, false},
		"all is lost":                 {10, 0, false},
		"all of three is lost":        {3, 0, false},
		"all of one is lost":          {1, 0, false},
		"there never was anything":    {0, 0, false},
		"there never was so much":     {0, 10, true},
		"less than half of many":      {1000, 700, true},
		"most of many is lost":        {1000, 300, false},
		"all of more than are looked": {1000, 0, false},
	} {
		h := newHost(t)
		if test.before > 0 {
			if got := h.starts(members(test.before)...).ask("/v1/clusters.csv"); got.Code != http.StatusOK {
				t.Fatalf("%s: before: %d, %s", reason, got.Code, got.Body)
			}
		}
		for range 2 {
			b := h.starts(members(test.now)...)
			if test.answered {
				if got := b.ask("/v1/clusters.csv"); got.Code != http.StatusOK {
					t.Errorf("%s: %d, %s", reason, got.Code, got.Body)
				}
				continue
			}
			unanswered(t, b, reason)
			b.time.Step(patience)
			_ = b.recall(t.Context())
			unanswered(t, b, reason+", for a while")
		}
		h.says(contract.FeedAccept)
		b, other := h.starts(members(test.now)...), h.starts(members(test.now)...)
		for _, b := range []*bench{b, other} { // the second compares with what the first has answered
			if got := strings.Fields(b.names(b.ask("/v1/clusters.json"))); len(got) != test.now {
				t.Errorf("%s: a person has accepted it: %d", reason, len(got))
			}
		}
	}
}

// TestAccept expects a process that runs to answer once a person has said so, and not before it knows
// what there is.
func TestAccept(t *testing.T) {
	h := newHost(t)
	all := members(10)
	b := h.starts(all...)
	for _, cluster := range all[:9] {
		b.drop(cluster.Name)
	}
	b.time.Step(settle)
	_ = b.recall(t.Context())
	unanswered(t, b, "nine of ten are gone")
	h.says(contract.FeedAccept)
	b.trouble = errors.New("broken")
	if b.recall(t.Context()) == nil {
		t.Error("it is accepted what is not known")
	}
	b.trouble = nil
	if err := b.recall(t.Context()); err != nil {
		t.Error(err)
	}
	if got := b.names(b.ask("/v1/clusters.json")); got != "c009" {
		t.Errorf("accepted: %q", got)
	}
	again := h.starts(all[9])
	if got := again.names(again.ask("/v1/clusters.json")); got != "c009" {
		t.Errorf("started again: %q", got)
	}
}

// TestRecordLost expects what is kept to be no reason to answer where it can't be read, and to be none
// not to where this process knows better.
func TestRecordLost(t *testing.T) {
	h := newHost(t)
	broken := true
	h.PrependReactor("*", "leases", func(action kubetesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("broken")
	})
	b := h.starts(members(10)...)
	unanswered(t, b, "it can't be read")
	broken = false
	h.says("?")
	if err := b.recall(t.Context()); err == nil || !strings.Contains(err.Error(), "kubectl annotate lease hub-controller --namespace=registries --overwrite clusterregistry.k8s.io/controller-feed=accept") {
		t.Error(err)
	}
	unanswered(t, b, "it is not what was written")
	h.says("")
	answers := func(reason string) {
		t.Helper()
		if err := b.recall(t.Context()); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if got := b.ask("/v1/flux"); got.Code != http.StatusOK {
			t.Errorf("%s: %d, %s", reason, got.Code, got.Body)
		}
	}
	answers("it was removed")
	broken = true
	for i, cluster := range members(9) { // one after the other, as people do
		b.drop(cluster.Name)
		b.time.Step(settle)
		if i < 6 {
			answers("it can't be written that one went")
		}
	}
	broken = false
	_ = b.recall(t.Context())
	unanswered(t, b, "three of four went at once")
}

// TestMadeAgain expects clusters that are made again one by one, where nothing says what was answered
// before, to be answered once all are there: programs would delete the others.
func TestMadeAgain(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		h := newHost(t)
		b := h.starts()
		for i, cluster := range members(10) {
			cluster.CreationTimestamp = metav1.NewTime(b.time.Now())
			b.put(cluster)
			_ = b.recall(t.Context())
			unanswered(t, b, fmt.Sprintf("%d of 10 are there", i+1))
			b.time.Step(patience - time.Second)
		}
		if accepted {
			h.says(contract.FeedAccept)
		} else {
			unanswered(t, b, "others may come")
			b.time.Step(time.Second)
		}
		if err := b.recall(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Fields(b.names(b.ask("/v1/clusters.json"))); len(got) != 10 {
			t.Errorf("all are there: %q", got)
		}
		later := member("later")
		later.CreationTimestamp = metav1.NewTime(b.time.Now())
		b.put(later)
		if got := strings.Fields(b.names(b.ask("/v1/clusters.json"))); len(got) != 11 {
			t.Errorf("one that is added later: %q", got)
		}
	}
}

// TestSample expects some of many names to stay the same, whatever the others are.
func TestSample(t *testing.T) {
	var all []string
	for _, cluster := range members(1000) {
		all = append(all, cluster.Name)
	}
	first := sample(slices.Clone(all))
	second := sample(slices.Clone(all[:900]))
	common := 0
	for _, name := range first {
		if slices.Contains(second, name) {
			common++
		}
	}
	if len(first) != sampled || len(second) != sampled || !slices.IsSorted(first) || common < sampled*8/10 {
		t.Errorf("%d of %d and %d", common, len(first), len(second))
	}
	content, err := json.Marshal(answered{Clusters: first, Addressed: second})
	if err != nil || len(content) > 64<<10 {
		t.Errorf("%v, %d bytes", err, len(content))
	}
}

// TestUnverified expects handshakes that fail at first to leave no answer without the addresses, and those
// of most clusters to be a reason to ask a person.
func TestUnverified(t *testing.T) {
	unreached := probe.Result{Outcome: probe.Failed, Reason: probe.ReasonTimedOut, Message: "It does not answer."}
	for reason, test := range map[string]struct {
		fail, times int
		record      bool
		at, later   int
	}{
		"all fail once, as without a network":   {10, 1, true, http.StatusServiceUnavailable, http.StatusOK},
		"all fail, and never had an address":    {10, 9, false, http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		"all fail":                              {10, 9, true, http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		"most fail":                             {6, 9, true, http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		"one fails":                             {1, 9, true, http.StatusServiceUnavailable, http.StatusOK},
		"one fails, and never had an address":   {1, 9, false, http.StatusServiceUnavailable, http.StatusOK},
		"half of them fail, as of two networks": {5, 9, true, http.StatusServiceUnavailable, http.StatusOK},
	} {
		h := newHost(t)
		if test.record {
			h.starts(members(10)...)
		}
		b := h.starts()
		for _, cluster := range members(test.fail) {
			b.found[cluster.Spec.Endpoints[0].URL] = unreached
		}
		b.put(members(10)...)
		if got := b.ask("/v1/clusters.json"); got.Code != test.at {
			t.Errorf("%s: %d", reason, got.Code)
		}
		if test.times == 1 {
			clear(b.found)
		}
		for range failures {
			b.time.Step(look)
			b.put(members(10)...)
		}
		_ = b.recall(t.Context())
		got := b.ask("/v1/clusters.json")
		if got.Code != test.later {
			t.Errorf("%s: later: %d, %s", reason, got.Code, got.Body)
		}
		if test.later == http.StatusOK {
			addressed := strings.Count(got.Body.String(), `"address":"https://`)
			if want := 10 - test.fail; addressed != want && (test.times > 1 || addressed != 10) {
				t.Errorf("%s: %d have an address", reason, addressed)
			}
			continue
		}
		h.says(contract.FeedAccept)
		_ = b.recall(t.Context())
		if got := b.ask("/v1/clusters.json"); got.Code != http.StatusOK {
			t.Errorf("%s: a person has accepted it: %d", reason, got.Code)
		}
	}
}
