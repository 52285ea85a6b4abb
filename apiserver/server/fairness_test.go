package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

var (
	read     = request.RequestInfo{IsResourceRequest: true, Verb: "list", Path: "/livez"}
	write    = request.RequestInfo{IsResourceRequest: true, Verb: "create"}
	watching = request.RequestInfo{IsResourceRequest: true, Verb: "watch"}
)

// front is the filter that the server has in front, before requests that last until
// they are told to end.
type front struct {
	t *testing.T
	*fairQueues
	handler http.Handler
}

// call is a request and what has become of it.
type call struct {
	info   request.RequestInfo
	who    string
	groups []string
	seats  uint64
	panics bool
	// stuck: the client doesn't read what the watch begins with.
	stuck bool

	runs, waits, end chan struct{}
	cancel           context.CancelFunc
	answer           chan *httptest.ResponseRecorder
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

func newFront(t *testing.T, reads, writes int, maxWait time.Duration) *front {
	f := &front{t: t, fairQueues: newFairQueues(reads, writes, 4, time.Minute)}
	lasting := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if c.info.Verb == "watch" && !c.stuck {
			flowcontrol.WatchInitialized(r.Context())
		}
		close(c.runs)
		<-c.end
		if c.panics {
			panic(http.ErrAbortHandler)
		}
	})
	estimate := func(r *http.Request, _, _ string) flowcontrolrequest.WorkEstimate {
		return flowcontrolrequest.WorkEstimate{InitialSeats: callOf(r.Context()).seats}
	}
	f.handler = genericfilters.WithPriorityAndFairness(lasting, nil, f, estimate, maxWait)
	return f
}

// Handle says when a request begins to wait.
func (f *front) Handle(ctx context.Context, digest flowcontrol.RequestDigest, note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() flowcontrolrequest.WorkEstimate, queued fairqueuing.QueueNoteFn, execute func()) {
	f.fairQueues.Handle(ctx, digest, note, estimate, func(in bool) {
		queued(in)
		if in {
			close(callOf(ctx).waits)
		}
	}, execute)
}

// begin sends a request and returns when it runs, waits or has its answer.
func (f *front) begin(who string, info request.RequestInfo, change ...func(*call)) *call {
	c := &call{info: info, who: who, seats: 1, runs: make(chan struct{}), waits: make(chan struct{}), end: make(chan struct{}), answer: make(chan *httptest.ResponseRecorder, 1)}
	for _, do := range change {
		do(c)
	}
	ctx, cancel := context.WithCancel(context.WithValue(f.t.Context(), callKey{}, c))
	c.cancel = cancel
	ctx = request.WithRequestInfo(request.WithUser(ctx, &user.DefaultInfo{Name: who, Groups: c.groups}), &c.info)
	go func() {
		w := httptest.NewRecorder()
		defer func() {
			_ = recover()
			c.answer <- w
		}()
		f.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	}()
	select {
	case <-c.runs:
	case <-c.waits:
	case w := <-c.answer:
		c.answer <- w
	}
	return c
}

// is reports what a request does: "runs", "waits", or its status.
func (c *call) is() string {
	select {
	case w := <-c.answer:
		c.answer <- w
		return fmt.Sprint(w.Code)
	default:
	}
	select {
	case <-c.runs:
		return "runs"
	default:
		return "waits"
	}
}

// finish ends a request that runs, and returns when its seats are free again.
func (c *call) finish() *httptest.ResponseRecorder {
	close(c.end)
	return <-c.answer
}

// idle fails the test unless nothing runs and waits any more.
func (f *front) idle() {
	f.t.Helper()
	for _, l := range []*limit{f.reads, f.lists, f.writes} {
		l.mu.Lock()
		if l.taken != 0 || l.waiting != 0 || len(l.flows) != 0 {
			f.t.Errorf("%s: %d seats are taken and %d requests wait, of %d users", l.name, l.taken, l.waiting, len(l.flows))
		}
		l.mu.Unlock()
	}
}

// TestOneUserLeavesRoom has one user send more slow reads than the server takes.
func TestOneUserLeavesRoom(t *testing.T) {
	f := newFront(t, 400, 200, time.Minute)
	var calls []*call
	count := map[string]int{}
	for range 600 {
		c := f.begin("greedy", read)
		calls = append(calls, c)
		count[c.is()]++
	}
	if count["runs"] != 200 || count["waits"] != 200 || count["429"] != 200 {
		t.Errorf("600 slow reads of one user: %v", count)
	}
	w := <-calls[len(calls)-1].answer
	if w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "try again later.") {
		t.Errorf("refused with %v %q", w.Header(), w.Body)
	}
	for i := range 150 {
		c := f.begin(fmt.Sprint("other", i), read)
		if got := c.is(); got != "runs" {
			t.Fatalf("the read of another user, %d: %s", i, got)
		}
		calls = append(calls, c)
	}
	for range 20 {
		c := f.begin("one more", read)
		if got := c.is(); got != "runs" {
			t.Fatalf("%d reads of one more user: %s", len(calls)-750, got)
		}
		calls = append(calls, c)
	}
	for i, c := range calls {
		if i < 400 {
			<-c.runs // those that wait, too, as the others end
		}
		if c.is() == "runs" {
			if w := c.finish(); w.Code != http.StatusOK {
				t.Errorf("a request that was carried out ended with %d", w.Code)
			}
		}
	}
	f.idle()
}

// TestFreeSeats looks at who gets how many before one waits.
func TestFreeSeats(t *testing.T) {
	f := newFront(t, 12, 6, time.Minute)
	var calls []*call
	for _, test := range []struct {
		reason, who string
		info        request.RequestInfo
		want        int
	}{
		{"the first user gets half", "ann", read, 6},
		{"the next one gets half of what is left", "bob", read, 3},
		{"and so on", "eve", read, 2},
		{"who has something gets no more", "ann", read, 0},
		{"there is something for whoever has nothing", "zoe", read, 1},
		{"until nothing is left", "max", read, 0},
		{"writes have a limit of their own", "ann", write, 3},
	} {
		got := 0
		for {
			c := f.begin(test.who, test.info)
			if c.is() != "runs" {
				c.cancel()
				<-c.answer
				break
			}
			calls = append(calls, c)
			got++
		}
		if got != test.want {
			t.Errorf("%s: %d, want %d", test.reason, got, test.want)
		}
	}
	for _, test := range []struct {
		reason, who string
		groups      []string
		info        request.RequestInfo
		want        string
	}{
		{"a probe", user.Anonymous, nil, request.RequestInfo{Verb: "get", Path: "/livez"}, "runs"},
		{"another probe", "ann", nil, request.RequestInfo{Verb: "get", Path: "/readyz"}, "runs"},
		{"an old probe", user.Anonymous, nil, request.RequestInfo{Verb: "get", Path: "/healthz"}, "runs"},
		{"what looks like one", "ann", nil, request.RequestInfo{Verb: "get", Path: "/livezz"}, "waits"},
		{"the server's own", user.APIServerUser, []string{user.SystemPrivilegedGroup}, read, "runs"},
		{"who has the server's name only", user.APIServerUser, nil, read, "waits"},
		{"who has the server's group only", "ann", []string{user.SystemPrivilegedGroup}, read, "waits"},
	} {
		c := f.begin(test.who, test.info, func(c *call) { c.groups = test.groups })
		if got := c.is(); got != test.want {
			t.Errorf("%s: %s, want %s", test.reason, got, test.want)
		}
		if c.is() != "runs" {
			c.cancel()
			<-c.answer
			continue
		}
		calls = append(calls, c)
	}
	for _, c := range calls {
		c.finish()
	}
	f.idle()
}

// TestTurns has more users than seats, and looks at who is served next.
func TestTurns(t *testing.T) {
	f := newFront(t, 6, 6, time.Minute)
	running := map[string]*call{}
	for _, name := range []string{"ann1", "ann2", "ann3", "bob1", "cy1", "dan1"} {
		running[name] = f.begin(strings.TrimRight(name, "123"), read)
	}
	waiting := map[string]*call{}
	for _, name := range []string{"ann4", "ann5", "bob2", "eve1", "ann6", "fay1"} {
		waiting[name] = f.begin(strings.TrimRight(name, "123456"), read)
	}
	for name, c := range running {
		if c.is() != "runs" {
			t.Fatalf("%s %s", name, c.is())
		}
	}
	for name, c := range waiting {
		if want := map[bool]string{true: "429", false: "waits"}[name == "ann6"]; c.is() != want {
			t.Fatalf("%s: %s, want %s", name, c.is(), want)
		}
	}
	for _, step := range []struct{ reason, ends, next string }{
		{"who has nothing comes first", "ann1", "eve1"},
		{"although others came before", "ann2", "fay1"},
		{"then who has one seat, of whom ann came first", "dan1", ""},
		{"two seats are free, as many as anyone may have with them", "cy1", "ann4"},
	} {
		running[step.ends].finish()
		for name, c := range waiting {
			if name == step.next {
				<-c.runs
				delete(waiting, name)
				running[name] = c
			}
		}
		for name, c := range waiting {
			if c.is() == "runs" {
				t.Errorf("%s: %s runs", step.reason, name)
			}
		}
		delete(running, step.ends)
	}
	for _, c := range waiting {
		c.cancel()
		<-c.answer
	}
	for _, c := range running {
		c.finish()
	}
	f.idle()
}

// TestWaitEnds ends requests while they wait.
func TestWaitEnds(t *testing.T) {
	f := newFront(t, 2, 2, time.Minute)
	first := f.begin("ann", read)
	gone, stays := f.begin("ann", read), f.begin("bob", read)
	if gone.is() != "waits" || stays.is() != "runs" {
		t.Fatalf("%s, %s", gone.is(), stays.is())
	}
	gone.cancel()
	if w := <-gone.answer; w.Code != http.StatusTooManyRequests {
		t.Errorf("a client that went away: %d", w.Code)
	}
	if f.reads.waiting != 0 || f.reads.taken != 2 {
		t.Errorf("%d wait, %d seats are taken", f.reads.waiting, f.reads.taken)
	}
	first.finish()
	stays.finish()
	f.idle()

	f = newFront(t, 1, 1, 20*time.Millisecond)
	first = f.begin("ann", read)
	late := f.begin("bob", read)
	if w := <-late.answer; w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("a request that waited for too long: %d %v", w.Code, w.Header())
	}
	first.finish()
	f.idle()
}

// TestLists has lists take several seats, of their own.
func TestLists(t *testing.T) {
	f := newFront(t, 40, 2, time.Minute)
	seats := func(n uint64) func(*call) { return func(c *call) { c.seats = n } }
	calls := []*call{f.begin("ann", read, seats(10)), f.begin("ann", read, seats(6)), f.begin("ann", read, seats(4))}
	waits := f.begin("ann", read, seats(2))
	if f.lists.taken != 20 || calls[2].is() != "runs" || waits.is() != "waits" {
		t.Errorf("3 lists take %d seats of those of 2 processors; the last of them %s and the next one %s", f.lists.taken, calls[2].is(), waits.is())
	}
	// Reads that take one don't wait for lists, not even the same user's.
	for range 20 {
		get := f.begin("ann", read)
		if get.is() != "runs" {
			t.Fatalf("a read beside lists %s", get.is())
		}
		calls = append(calls, get)
	}
	// Who has all that a user gets keeps no one else waiting.
	for _, n := range []uint64{12, 7} {
		list := f.begin(fmt.Sprint("other", n), read, seats(n))
		if list.is() != "runs" {
			t.Fatalf("a list of another user %s", list.is())
		}
		calls = append(calls, list)
	}
	if f.lists.taken != 39 {
		t.Errorf("%d seats are taken", f.lists.taken)
	}
	wide, small := f.begin("cy", read, seats(10)), f.begin("dan", read, seats(2))
	if wide.is() != "waits" || small.is() != "waits" {
		t.Fatalf("a list %s, and one after it %s", wide.is(), small.is())
	}
	calls[len(calls)-1].finish()
	calls = calls[:len(calls)-1]
	if wide.is() != "waits" || small.is() != "waits" {
		t.Fatalf("with 8 seats free, a list of 10 %s, and one after it %s", wide.is(), small.is())
	}
	// It keeps no one waiting any more when its client is gone.
	wide.cancel()
	<-wide.answer
	<-small.runs
	waits.cancel()
	<-waits.answer
	for _, c := range append(calls, small) {
		c.finish()
	}
	f.idle()
}

// TestWatches holds seats only until a watch has begun.
func TestWatches(t *testing.T) {
	f := newFront(t, 2, 2, time.Minute)
	var calls []*call
	for range 50 {
		c := f.begin("ann", watching)
		<-c.runs
		calls = append(calls, c)
	}
	f.awaitFree()
	if got := f.GetInterestedWatchCount(&request.RequestInfo{IsResourceRequest: true, Verb: "create"}); got != 50 {
		t.Errorf("%d watches are counted", got)
	}
	for _, c := range calls {
		c.finish()
	}
	f.idle()
}

// awaitFree waits until no read has a seat.
func (f *front) awaitFree() {
	taken := func() int {
		f.reads.mu.Lock()
		defer f.reads.mu.Unlock()
		return f.reads.taken
	}
	for taken() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestWatchesThatDontBegin takes the seats of watches back whose clients don't read
// what the watches begin with: they may last for an hour. Each goes on all the same.
func TestWatchesThatDontBegin(t *testing.T) {
	f := newFront(t, 2, 2, time.Minute)
	f.longest = 20 * time.Millisecond
	var calls []*call
	for range 4 {
		c := f.begin("ann", watching, func(c *call) { c.stuck = true })
		<-c.runs
		calls = append(calls, c)
	}
	f.awaitFree()
	get := f.begin("ann", read)
	<-get.runs
	time.Sleep(2 * f.longest)
	if get.is() != "runs" || f.reads.taken != 1 {
		t.Errorf("a read that takes longer %s with %d seats", get.is(), f.reads.taken)
	}
	for _, c := range append(calls, get) {
		if w := c.finish(); w.Code != http.StatusOK {
			t.Errorf("ended with %d", w.Code)
		}
	}
	f.idle()
}

// TestPanics gives back the seats of a request that ends in a panic.
func TestPanics(t *testing.T) {
	f := newFront(t, 1, 1, time.Minute)
	c := f.begin("ann", read, func(c *call) { c.panics = true })
	next := f.begin("bob", read)
	c.finish()
	<-next.runs
	next.finish()
	f.idle()
}

// TestWithoutLimits lets everything pass when limits are off.
func TestWithoutLimits(t *testing.T) {
	f := newFront(t, 0, 0, time.Minute)
	for range 1000 {
		if c := f.begin("ann", read); c.is() != "runs" {
			t.Fatal(c.is())
		}
	}
}
