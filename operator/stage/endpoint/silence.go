package endpoint

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/lookup"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/verdict"
)

// tolerated is how long an address that has answered may be silent before clients are said to
// get no answer.
const tolerated = time.Minute

// Silences remembers of the address of each registry whether it has answered this operator, and
// since when it is silent. The zero value is ready to use. It is not stored: whether a way leads
// to an address is a matter of the pod and the node that ask, and the next pod may have none.
type Silences struct {
	lock  sync.Mutex
	known map[string]silence
}

type silence struct {
	address string
	// since is when the silence began, zero while the address answers.
	since time.Time
}

// note notes what was met at the address of a registry, whose key it is. It returns since when the address is
// silent, and whether it answered this operator before.
func (s *Silences) note(registry, address string, met health.Met, now time.Time) (since time.Time, answered bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if met != health.Silent {
		if s.known == nil {
			s.known = map[string]silence{}
		}
		s.known[registry] = silence{address: address}
		return time.Time{}, true
	}
	is, known := s.known[registry]
	if !known || is.address != address {
		delete(s.known, registry)
		return time.Time{}, false
	}
	if is.since.IsZero() {
		is.since = now
		s.known[registry] = is
	}
	return is.since, true
}

// answers is complete unless the address that clients are given refuses connections. Of one that
// is silent although it has answered this operator, it has a note, for which nothing waits: a
// firewall may keep the operator out, and let clients in. One that has never answered proves
// nothing: from inside of a cluster no way may lead to an address outside, such as that of its
// load balancer.
func (s *Stage) answers(ctx context.Context, address string) verdict.Verdict {
	met, err := s.Meet(ctx, address)
	since, answered := s.Silences.note(client.ObjectKeyFromObject(s.Registry).String(), address, met, s.Now)
	switch {
	case met == health.Refuses:
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "Service %s does not reach the servers yet: %s", s.Registry.Name+contract.ServerSuffix, err).In(verdict.Soon)
	case met == health.Answers || !answered:
		return done
	case s.Now.Sub(since) < tolerated:
		return done.In(verdict.Backstop)
	}
	advice := "check the node or the load balancer that has this address"
	if lookup.Failed(err) {
		advice = lookup.Advice
	}
	return done.Note(operatorv1alpha1.ReasonAddressSilent, fmt.Sprintf("no answer from %s, the address for clients, since %s (%s); it has answered the operator before: %s",
		address, since.UTC().Format(time.RFC3339), err, advice)).In(verdict.Backstop)
}

// Forget drops what is known of a registry that goes.
func (s *Silences) Forget(registry string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.known, registry)
}
