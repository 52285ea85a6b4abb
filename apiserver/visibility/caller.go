package visibility

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// caller is who makes a request.
type caller struct {
	user.Info
	// key tells callers apart whose reviews may have different answers.
	key string
	// record tells callers apart whose sets are recorded apart: not two credentials of
	// the same user, such as a token and the one that replaces it.
	record string
}

// callerOf returns who makes the request of a context.
func callerOf(ctx context.Context) (caller, error) {
	who, known := genericapirequest.UserFrom(ctx)
	if !known {
		return caller{}, errors.New("the request has no user")
	}
	extra := maps.Clone(who.GetExtra())
	key := hash(who, extra)
	delete(extra, user.CredentialIDKey)
	return caller{Info: who, key: key, record: hash(who, extra)}, nil
}

// hash returns a short form of what a decision about a user can go by. The order of groups
// says nothing.
func hash(who user.Info, extra map[string][]string) string {
	content, err := json.Marshal([]any{who.GetName(), who.GetUID(), slices.Sorted(slices.Values(who.GetGroups())), extra})
	if err != nil {
		panic(err) // no text can't be written as JSON
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// turns let what is asked about one caller be asked by one request at a time: who waits for
// its turn mostly finds the answers of the one before, or that it got none.
type turns struct {
	mu      sync.Mutex
	callers map[string]*turn
}

type turn struct {
	// taken has one element while a request has the turn.
	taken   chan struct{}
	waiting int
	// failed is what the last request that got no answer had asked, and when it was told.
	failed any
	told   time.Time
	err    error
}

// take waits for a turn, and returns what ends it with how what was asked has ended. An error
// is that of the context, or the one that the same question had while this one waited: a
// server that does not answer is not asked by each in turn.
func (t *turns) take(ctx context.Context, key string, asks any) (done func(error), err error) {
	came := time.Now()
	t.mu.Lock()
	mine := t.callers[key]
	if mine == nil {
		mine = &turn{taken: make(chan struct{}, 1)}
		t.callers[key] = mine
	}
	mine.waiting++
	t.mu.Unlock()
	select {
	case mine.taken <- struct{}{}:
	case <-ctx.Done():
		t.leave(key, mine)
		return nil, ctx.Err()
	}
	done = func(err error) {
		// That one request ran out of time says nothing about others.
		if err != nil && ctx.Err() == nil && !errors.Is(err, errCrowded) {
			mine.failed, mine.told, mine.err = asks, time.Now(), err
		}
		<-mine.taken
		t.leave(key, mine)
	}
	if mine.failed == asks && mine.told.After(came) {
		err = mine.err
		<-mine.taken
		t.leave(key, mine)
		return nil, err
	}
	return done, nil
}

// leave forgets a turn that no one waits for.
func (t *turns) leave(key string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.waiting--; mine.waiting == 0 {
		delete(t.callers, key)
	}
}
