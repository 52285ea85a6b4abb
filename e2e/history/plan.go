package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

const (
	// longest is how many writes a trail may have: no more endpoints than a cluster may have,
	// with room for those that other clients append at the same time.
	longest = 8
	// shared is how many ids clusters compete for.
	shared = 2
)

// plan chooses what clients ask for next.
type plan struct {
	label string

	mu     sync.Mutex
	random *rand.Rand
	// slots are the clusters, one for each client, which alone creates and deletes it: what
	// became of a creation or deletion without an answer could not be told apart from that of
	// another's.
	slots  []slot
	writes int
}

// slot is a name for clusters.
type slot struct {
	key string
	// generation counts the names that were given up.
	generation int
	exists     bool
	// seen is the cluster as it was read last, and at when that was.
	seen Cluster
	at   time.Duration
}

func newPlan(label string, clients int, random *rand.Rand) *plan {
	p := &plan{label: label, random: random, slots: make([]slot, clients)}
	for i := range p.slots {
		p.name(i)
	}
	return p
}

// name gives a slot a name that it has not had.
func (p *plan) name(i int) {
	p.slots[i] = slot{key: fmt.Sprintf("%s-%d-%d", p.label, i, p.slots[i].generation), generation: p.slots[i].generation + 1}
}

// next returns what a client asks for, and the identity of what it creates or replaces. Of 100
// requests 35 read one cluster, 1 lists all, 2 delete the client's own and the rest change
// any; a client whose cluster does not exist creates it.
func (p *plan) next(client int) (Operation, Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, other := &p.slots[client], &p.slots[p.random.IntN(len(p.slots))]
	o := Operation{Client: client, Key: other.key}
	dice := p.random.IntN(100)
	switch {
	case dice < 35:
		o.Kind = Get
	case dice < 36:
		o.Kind, o.Key = List, ""
	case !own.exists:
		o.Kind, o.Key = Create, own.key
	case dice < 38:
		o.Kind, o.Key = Delete, own.key
	case other.seen == Cluster{}:
		o.Kind = Get
	case dice < 60 || strings.Count(other.seen.Trail, " ") >= longest-1:
		o.Kind, o.From = Replace, other.seen.Version
	default:
		o.Kind = Append
	}
	if !o.writes() {
		return o, Cluster{}
	}
	p.writes++
	o.Write = fmt.Sprintf("w%d", p.writes)
	switch {
	case o.Kind == Replace:
		return o, Cluster{UID: other.seen.UID, ID: other.seen.ID}
	case o.Kind != Create:
		return o, Cluster{}
	case p.random.IntN(3) == 0:
		return o, Cluster{ID: fmt.Sprintf("%s-shared-%d", p.label, p.random.IntN(shared))}
	}
	return o, Cluster{ID: p.label + "-" + o.Write}
}

// learn takes an answer into what is known of the cluster.
func (p *plan) learn(o Operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		s := &p.slots[i]
		if s.key != o.Key {
			continue
		}
		if (o.Kind == Create || o.Kind == Delete) && o.Result == Unanswered {
			p.name(i) // no one knows whether it exists, or will
			return
		}
		switch o.Kind {
		case Create:
			s.exists = s.exists || o.Result == Done
		case Delete:
			s.exists = s.exists && o.Result != Done && o.Result != Missing
		default:
		}
		switch found := o.found(); {
		case o.Kind == Delete || o.Result == Missing && o.Call > s.at:
			s.seen, s.at = Cluster{}, o.Return
		case found.Version > s.seen.Version:
			s.seen, s.at = found, o.Return
		}
	}
}
