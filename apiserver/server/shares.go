package server

import (
	"context"
	"slices"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/clusterregistry/operator/apiserver/authn"
)

// shareLimits makes the limits on requests in flight fair when there is no host
// whose priorities could do so. The server's own limits know no users: one who
// keeps them full keeps everybody out, kubelet's probes included, and a server
// that kubelet takes for dead is killed.
func shareLimits(config *genericserver.Config) {
	if config.FlowControl == nil {
		config.FlowControl = newShares(config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight)
	}
}

// shares is a flow control that lets a user have as many requests in flight as
// are left for all others. So one user alone gets half of a limit, two get a
// third each, and whoever comes next finds as much free as each of them has.
// Health checks pass always. What doesn't fit is refused at once, with 429.
type shares struct {
	flowcontrol.WatchTracker
	flowcontrol.MaxSeatsTracker
	reads, writes share
}

var _ flowcontrol.Interface = &shares{}

func newShares(reads, writes int) *shares {
	return &shares{WatchTracker: flowcontrol.NewWatchTracker(), MaxSeatsTracker: flowcontrol.NewMaxSeatsTracker(), reads: newShare(reads), writes: newShare(writes)}
}

// What the filter in front logs with each request.
var (
	byUser  = &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "by-user", UID: "by-user"}}
	limited = &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "shared"}}
	free    = &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "exempt", UID: "exempt"}}
)

var reading = sets.New("get", "list", "watch")

// Handle carries a request out, or returns without doing so.
func (s *shares) Handle(_ context.Context, request flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string), _ func() flowcontrolrequest.WorkEstimate, _ fairqueuing.QueueNoteFn, execute func()) {
	name := request.User.GetName()
	if exempt(request) {
		note(byUser, free, name)
		execute()
		return
	}
	note(byUser, limited, name)
	of := &s.writes
	if reading.Has(request.RequestInfo.Verb) {
		of = &s.reads
	}
	if of.enter(name) {
		defer of.leave(name)
		execute()
	}
}

// exempt reports whether a request passes whatever is in flight: a health check,
// or the server's own.
func exempt(request flowcontrol.RequestDigest) bool {
	return !request.RequestInfo.IsResourceRequest && slices.Contains(authn.HealthPaths, request.RequestInfo.Path) ||
		request.User.GetName() == user.APIServerUser
}

// Run does nothing: there are no rules to follow.
func (*shares) Run(stop <-chan struct{}) error {
	<-stop
	return nil
}

// Install adds no pages to the server.
func (*shares) Install(*mux.PathRecorderMux) {}

// share is one limit, and what each user has of it.
type share struct {
	limit int // 0: there is none

	mu     sync.Mutex
	total  int
	byUser map[string]int
}

func newShare(limit int) share { return share{limit: limit, byUser: map[string]int{}} }

func (s *share) enter(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && s.byUser[name] >= s.limit-s.total {
		return false
	}
	s.total++
	s.byUser[name]++
	return true
}

func (s *share) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.byUser[name]--; s.byUser[name] == 0 {
		delete(s.byUser, name)
	}
}
