// Package visibility decides which clusters a caller sees and may change, where a server
// shows each caller only those that its permissions reach.
//
// The decision is a review of the virtual subresource clustersets/clusters: without a name
// it is about all clusters, with the name of a ClusterSet about those in that set. A review
// is asked of the server's own authorizer, which in aggregated mode asks the host cluster,
// and is kept for a while.
//
// What a client has read is of use to it only as long as it sees the same sets: a watch
// that began after a list with other sets would never report what was in them before. So
// etcd keeps a record per caller, with a hash of the sets and the revision at which they
// last changed. Whatever hands a revision to a client first confirms that the record has
// the hash of the sets that it was read with, by a read of etcd that began after it; and
// whatever continues from a revision needs one that is not older than the record's. As
// every read is confirmed after it was made, and every change of a record comes after that,
// no revision that was handed out with other sets is ever new enough, whichever server it
// comes to, and whatever a server has kept of older reviews.
package visibility

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
)

// Visibility is which clusters a server shows.
type Visibility string

const (
	// All shows all clusters to everyone who may read clusters.
	All Visibility = "All"
	// ClusterSets shows a caller the clusters of the sets that it may read.
	ClusterSets Visibility = "ClusterSets"
)

// Periods are how long answers are relied on.
type Periods struct {
	// Cache is how long a review is kept that allows something. Zero keeps none.
	Cache time.Duration
	// Recheck is how often the sets of a caller with an open watch are looked at again,
	// with up to a fifth more at random. Zero does so before each event that the watch delivers.
	Recheck time.Duration
}

const (
	// denied is how much longer a review is kept that denies something: a caller that
	// sees few sets of many costs little.
	denied = 6
	// rounds is for how many callers all sets could be reviewed while a review that denies
	// is kept, at least: else the first of them would be too old before there is the last.
	rounds = 4
	// kept is how many reviews are kept.
	kept = 1 << 16
	// parallel is how many reviews of one caller are asked at a time.
	parallel = 8
	// patience is how long a request waits for all reviews of its caller, at most. The
	// next one continues with what was found.
	patience = 30 * time.Second
)

// Config is what a Policy decides by.
type Config struct {
	// Authorizer decides; nothing but its unconditional Allow counts.
	Authorizer authorizer.UnconditionalAuthorizer
	// Sets returns the names of all ClusterSets, by etcd's latest state.
	Sets func(context.Context) ([]string, error)
	// Records are where the sets of callers are recorded.
	Records *Records
	// Periods are how long answers are relied on.
	Periods Periods
	// Limiter bounds the reviews per second, where each is a request to another server.
	// It may be nil.
	Limiter flowcontrol.RateLimiter
	// Patience is how long a request waits for all reviews of its caller. Zero stands for
	// half a minute.
	Patience time.Duration
	// Masters says that the group system:masters may do everything, whoever is asked.
	Masters bool
}

// Policy says which clusters a caller sees and may change.
type Policy struct {
	Config
	known *lru.Cache
	turns turns
	// sets is how many there were when they were last listed.
	sets atomic.Int64
}

// New returns a policy.
func New(config Config) *Policy {
	if config.Patience == 0 {
		config.Patience = patience
	}
	return &Policy{Config: config, known: lru.New(kept), turns: turns{users: map[string]*turn{}}}
}
