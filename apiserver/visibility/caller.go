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

// turns let the sets of one caller be found out once at a time: who waits for its turn
// mostly finds the answers of the one before.
type turns struct {
	mu      sync.Mutex
	callers map[string]*turn
}

type turn struct {
	mu      sync.Mutex
	waiting int
}

// take waits for the caller's turn, and returns what ends it.
func (t *turns) take(key string) (done func()) {
	t.mu.Lock()
	mine := t.callers[key]
	if mine == nil {
		mine = &turn{}
		t.callers[key] = mine
	}
	mine.waiting++
	t.mu.Unlock()
	mine.mu.Lock()
	return func() {
		mine.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.waiting--; mine.waiting == 0 {
			delete(t.callers, key)
		}
	}
}
