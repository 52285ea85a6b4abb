package visibility

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// caller is who makes a request, as reviews ask about it.
type caller struct {
	user.Info
	// key tells callers apart whose reviews may have different answers, and who are recorded
	// apart.
	key string
	// user tells users apart, who share what reviews another server answers.
	user string
}

// ofCredential is the prefix of what Kubernetes says of a credential rather than of its user:
// the token's id, and the pod and the node that it is for.
const ofCredential = "authentication.kubernetes.io/"

// callerOf returns who makes the request of a context. All credentials of a user are one
// caller, and are asked about as one: a ServiceAccount may have a token for each of many pods.
// What else an authenticator says of a user does count, since it may narrow what the user may
// do, as the scopes of OpenShift's tokens.
func callerOf(ctx context.Context) (caller, error) {
	who, known := genericapirequest.UserFrom(ctx)
	if !known {
		return caller{}, errors.New("the request has no user")
	}
	asked := &user.DefaultInfo{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: maps.Clone(who.GetExtra())}
	maps.DeleteFunc(asked.Extra, func(key string, _ []string) bool { return strings.HasPrefix(key, ofCredential) })
	return caller{Info: asked, key: hash(asked), user: asked.Name + "\x00" + asked.UID}, nil
}

// hash returns a short form of what a decision about a user can go by. The order of groups
// says nothing.
func hash(who *user.DefaultInfo) string {
	content, err := json.Marshal([]any{who.Name, who.UID, slices.Sorted(slices.Values(who.Groups)), who.Extra})
	if err != nil {
		panic(err) // no text can't be written as JSON
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// turns let what is asked about one user be asked by one request at a time: who waits for
// its turn mostly finds the answers of the one before, or that it got none. As many turns as
// there are users share the limiter, so that none has more of it for more credentials.
type turns struct {
	mu    sync.Mutex
	users map[string]*turn
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
func (t *turns) take(ctx context.Context, user string, asks any) (done func(error), err error) {
	came := time.Now()
	t.mu.Lock()
	mine := t.users[user]
	if mine == nil {
		mine = &turn{taken: make(chan struct{}, 1)}
		t.users[user] = mine
	}
	mine.waiting++
	t.mu.Unlock()
	select {
	case mine.taken <- struct{}{}:
	case <-ctx.Done():
		t.leave(user, mine)
		return nil, ctx.Err()
	}
	done = func(err error) {
		// That one request ran out of time says nothing about others.
		if err != nil && ctx.Err() == nil && !errors.Is(err, errCrowded) {
			mine.failed, mine.told, mine.err = asks, time.Now(), err
		}
		<-mine.taken
		t.leave(user, mine)
	}
	if mine.failed == asks && mine.told.After(came) {
		err = mine.err
		<-mine.taken
		t.leave(user, mine)
		return nil, err
	}
	return done, nil
}

// leave forgets a turn that no one waits for.
func (t *turns) leave(user string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.waiting--; mine.waiting == 0 {
		delete(t.users, user)
	}
}
