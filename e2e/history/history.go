package history

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Kind is what a request asks for.
type Kind string

const (
	// Create is a POST of a cluster.
	Create Kind = "create"
	// Replace is a PUT of a cluster in the version, and with the UID, that was read before.
	Replace Kind = "replace"
	// Append is a JSON patch, without a precondition, that adds to what the cluster has.
	Append Kind = "append"
	// Delete is a DELETE without a precondition.
	Delete Kind = "delete"
	// Get is a GET of one cluster, without a version.
	Get Kind = "get"
	// List is a GET of all clusters of the history, without a version.
	List Kind = "list"
)

// Result is what a request was answered.
type Result string

const (
	// Unanswered is anything that leaves open whether a write is applied: no answer in time, a
	// broken connection, or a status that the state of the clusters does not explain.
	Unanswered Result = "unanswered"
	// Done is success.
	Done Result = "done"
	// Missing says that there is no such cluster.
	Missing Result = "missing"
	// Exists says that there is one of that name already.
	Exists Result = "exists"
	// Conflict says that the cluster is not in the version that was read, or is gone.
	Conflict Result = "conflict"
	// Taken says that another cluster has the spec.id, or is being given it.
	Taken Result = "taken"
)

// Open is the time at which a request is answered that never was.
const Open = time.Duration(math.MaxInt64)

// Cluster is a cluster as it was read. The zero value is one that does not exist.
type Cluster struct {
	Key     string
	Version uint64
	UID     string
	// ID is spec.id.
	ID string
	// Trail are the writes that made it what it is: the last that replaced all of it, and
	// what was appended since, separated by spaces.
	Trail string
}

// last is the write that changed the cluster last.
func (c Cluster) last() string { return c.Trail[strings.LastIndex(c.Trail, " ")+1:] }

// with is the trail after an append.
func (c Cluster) with(write string) string { return c.Trail + " " + write }

func (c Cluster) String() string {
	if c == (Cluster{}) {
		return "nothing"
	}
	return fmt.Sprintf("%q in version %d with UID %s", c.Trail, c.Version, c.UID)
}

// Operation is one request and what became of it.
type Operation struct {
	Client int
	Kind   Kind
	// Key is the name of the cluster; empty for a List.
	Key string
	// Write is the name of a write, unique in the history.
	Write string
	// From is the version that a Replace was made from.
	From uint64
	// Call and Return are when the request was sent and answered, since the history began.
	// Return is Open for what is unanswered.
	Call, Return time.Duration
	Result       Result
	// Found are the clusters in the answer. That to a Delete has only the UID.
	Found []Cluster
	// Listed is the version of a list.
	Listed uint64
	// Failure says what an unanswered request got instead.
	Failure string
}

func (o Operation) writes() bool { return o.Kind != Get && o.Kind != List }

// found is the one cluster of an answer; none where there was none.
func (o Operation) found() Cluster {
	if len(o.Found) != 1 {
		return Cluster{}
	}
	return o.Found[0]
}

// version is the version that the answer tells: of a list, or of a cluster. 0 is none.
func (o Operation) version() uint64 {
	switch {
	case o.Result != Done:
		return 0
	case o.Kind == List:
		return o.Listed
	}
	return o.found().Version
}

// String tells the request, the answer and when they were, for people.
func (o Operation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s of %s", o.Kind, cmp.Or(o.Key, "all"))
	if o.Write != "" {
		fmt.Fprintf(&out, " (write %s)", o.Write)
	}
	if o.From != 0 {
		fmt.Fprintf(&out, " from version %d", o.From)
	}
	fmt.Fprintf(&out, " by client %d at %s: %s", o.Client, o.Call.Round(time.Millisecond), o.Result)
	if o.Return != Open {
		fmt.Fprintf(&out, " at %s", o.Return.Round(time.Millisecond))
	}
	switch {
	case o.Kind == List && o.Result == Done:
		fmt.Fprintf(&out, ", %d clusters in version %d", len(o.Found), o.Listed)
	case o.found() != Cluster{}:
		fmt.Fprintf(&out, ", %s", o.found())
	case o.Failure != "":
		fmt.Fprintf(&out, ", %s", o.Failure)
	}
	return out.String()
}

// Event is a change that a watch reported.
type Event struct {
	Cluster
	Type watch.EventType
	// Told is when, since the history began.
	Told time.Duration
}

// Watch is what one client was told that watched all clusters of the history.
type Watch struct {
	Name string
	// From is the version after which it began, and To is the last that it reported, by
	// an event or a bookmark. All that is between them, it must have been told.
	From, To uint64
	Events   []Event
	// Resumed counts the watches that it needed after the first.
	Resumed int
}

// History is what was recorded. At its beginning there is none of its clusters. Its last
// operation is a list, begun when all others were answered, and all watches have been told
// of what that list shows.
type History struct {
	Operations []Operation
	Watches    []Watch
	// Rewritten lets others store clusters again as they are, as an operator does after the
	// storage version has changed.
	Rewritten bool
}
