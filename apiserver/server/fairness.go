package server

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/clusterregistry/operator/apiserver/authn"
)

// queueFairly makes the limits on requests in flight fair when there is no host
// whose priorities could do so. The server's own limits know no users: one who
// keeps them full keeps everybody out, kubelet's probes included, and a server
// that kubelet takes for dead is killed.
func queueFairly(config *genericserver.Config) {
	if config.FlowControl == nil {
		config.FlowControl = newFairQueues(config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight, runtime.GOMAXPROCS(0), config.RequestTimeout)
	}
}

// fairQueues is a flow control with a queue for each user. The filter in front,
// which is that of API priority and fairness, gives each request the time that it
// may wait, has a watch hold its seats until it has begun, and answers 429 with
// Retry-After to what is not carried out.
//
// The queues of API priority and fairness are of no use here: they leave no seat
// free for whoever comes next, give a user several queues, which users share, and
// count a request that lasts for what it is only when it is over.
type fairQueues struct {
	flowcontrol.WatchTracker
	flowcontrol.MaxSeatsTracker
	// Lists are what reads much: their clients need the server's time, and others
	// would wait for them if they stood in the same queues. nil: there is no limit.
	reads, lists, writes *limit
	// longest is how long a watch has its seats at most. Other requests end in time.
	longest time.Duration
}

var _ flowcontrol.Interface = &fairQueues{}

// listSeats is how many seats a list takes at most. That is one for each 100 KB, or
// as many for all that is longer than 1 MB and comes from the watch cache.
const listSeats = 10

// newFairQueues returns queues for so many reads, and writes, in flight. A user alone
// has half of them; of the longest lists, which take as much time as they get, as many
// as half the processors. A watch whose client doesn't read what the watch begins with
// gives its seats back when any other request would have ended.
func newFairQueues(reads, writes, processors int, longest time.Duration) *fairQueues {
	f := &fairQueues{WatchTracker: flowcontrol.NewWatchTracker(), MaxSeatsTracker: flowcontrol.NewMaxSeatsTracker(), longest: longest}
	if reads > 0 {
		f.reads = newLimit(toRead.Name, reads, reads)
		f.lists = newLimit("lists", reads, listSeats*max(1, processors/2))
		f.SetMaxSeats(toRead.Name, listSeats)
	}
	if writes > 0 {
		f.writes = newLimit(toWrite.Name, writes, writes)
	}
	return f
}

// What the filter in front logs with each request, and counts refusals by.
var (
	byUser  = &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "by-user", UID: "by-user"}}
	toRead  = priorityLevel("reads")
	toWrite = priorityLevel("writes")
	free    = priorityLevel("exempt")
)

func priorityLevel(name string) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

var reading = sets.New("get", "list", "watch")

// Handle carries a request out when its turn comes, or returns without doing so.
func (f *fairQueues) Handle(ctx context.Context, digest flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string), estimate func() flowcontrolrequest.WorkEstimate, queued fairqueuing.QueueNoteFn, execute func()) {
	name := digest.User.GetName()
	limit, level := f.limitOf(digest)
	note(byUser, level, name)
	if limit == nil {
		execute()
		return
	}
	// What remains of a write when it is answered, the events for those who watch,
	// doesn't count.
	seats := int(estimate().InitialSeats)
	if limit == f.reads && seats > 1 {
		limit = f.lists
	}
	mine := limit.join(name, seats)
	if mine == nil {
		metrics.AddReject(ctx, limit.name, byUser.Name, "queue-full")
		return
	}
	if !await(ctx, limit, mine, queued) {
		metrics.AddReject(ctx, limit.name, byUser.Name, "time-out")
		return
	}
	leave := sync.OnceFunc(func() { limit.leave(mine) })
	defer leave()
	if digest.RequestInfo.Verb == "watch" && f.longest > 0 {
		defer time.AfterFunc(f.longest, leave).Stop()
	}
	metrics.AddDispatch(ctx, limit.name, byUser.Name)
	metrics.AddRequestsExecuting(ctx, limit.name, byUser.Name, 1)
	defer metrics.AddRequestsExecuting(ctx, limit.name, byUser.Name, -1)
	execute()
}

// await returns true when the turn has come, and false if the request ends before.
func await(ctx context.Context, limit *limit, mine *turn, queued fairqueuing.QueueNoteFn) bool {
	select {
	case <-mine.come:
		metrics.ObserveWaitingDuration(ctx, limit.name, byUser.Name, "true", 0)
		return true
	default:
	}
	began := time.Now()
	queued(true)
	metrics.AddRequestsInQueues(ctx, limit.name, byUser.Name, 1)
	come := true
	select {
	case <-mine.come:
	case <-ctx.Done():
		// The turn may have come at the same moment.
		come = !limit.withdraw(mine)
	}
	metrics.AddRequestsInQueues(ctx, limit.name, byUser.Name, -1)
	queued(false)
	metrics.ObserveWaitingDuration(ctx, limit.name, byUser.Name, strconv.FormatBool(come), time.Since(began))
	request.TrackAPFQueueWaitLatency(ctx, time.Since(began))
	return come
}

// limitOf returns the limit that a request comes under and its name, or no limit for
// a request that never waits: a health check, the server's own, and whatever has none.
// Administrators are not exempt: what they need is a free seat, which each user finds,
// and a program that runs wild with their credentials must not have them all.
func (f *fairQueues) limitOf(digest flowcontrol.RequestDigest) (*limit, *flowcontrolv1.PriorityLevelConfiguration) {
	info := digest.RequestInfo
	limit, level := f.writes, toWrite
	if reading.Has(info.Verb) {
		limit, level = f.reads, toRead
	}
	if limit == nil || isHealthCheck(info) || isOwn(digest.User) {
		return nil, free
	}
	return limit, level
}

func isHealthCheck(info *request.RequestInfo) bool {
	return !info.IsResourceRequest && slices.Contains(authn.HealthPaths, info.Path)
}

// isOwn reports whether the server asks itself, over its loopback connection. Whoever
// has no more than its name, as by impersonation, does not.
func isOwn(who user.Info) bool {
	return who.GetName() == user.APIServerUser && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}

// Run does nothing: there are no rules to follow.
func (*fairQueues) Run(stop <-chan struct{}) error {
	<-stop
	return nil
}

// Install adds no pages to the server.
func (*fairQueues) Install(*mux.PathRecorderMux) {}
