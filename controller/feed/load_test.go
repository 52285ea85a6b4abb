package feed

import (
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestLoad expects more requests than there are places for to be told to come back, of one caller and
// of all.
func TestLoad(t *testing.T) {
	b := newBench(t)
	b.put(member("east"))
	entered, leave := make(chan struct{}), make(chan struct{})
	b.may = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		b.mu.Unlock()
		defer b.mu.Lock()
		entered <- struct{}{}
		<-leave
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
	}
	if got := b.ask("/nothing"); got.Code != http.StatusNotFound { // the token is not reviewed
		t.Fatal(got.Code)
	}
	done := make(chan int)
	for range inflightOf {
		go func() { done <- b.ask("/v1/flux").Code }()
	}
	<-entered // the others wait for what it is told
	eventually(t, func() error {
		b.load.mu.Lock()
		defer b.load.mu.Unlock()
		for _, of := range b.load.callers {
			if of.requests == inflightOf {
				return nil
			}
		}
		return errors.New("not all have a place")
	})
	if got := b.ask("/v1/flux"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("one more of the caller: %d", got.Code)
	}
	b.load.mu.Lock()
	b.load.requests += inflight - inflightOf
	b.load.mu.Unlock()
	b.tokens["other"] = user("other", audience)
	if got := b.askAs("other", "/v1/flux"); got.Code != http.StatusTooManyRequests || b.reviewed > inflightOf+1 {
		t.Errorf("one more of all: %d, after %d reviews", got.Code, b.reviewed)
	}
	close(leave)
	for range inflightOf {
		if code := <-done; code != http.StatusOK {
			t.Errorf("one that had a place: %d", code)
		}
	}
	b.load.mu.Lock()
	defer b.load.mu.Unlock()
	if b.load.requests != inflight-inflightOf || b.load.bytes != 0 || len(b.load.callers) != 0 {
		t.Errorf("what is left: %+v", &b.load)
	}
}

// TestAnswersAreKept expects an answer to be made once for all who see the same, until something
// changes.
func TestAnswersAreKept(t *testing.T) {
	b := newBench(t)
	b.put(member("east"))
	b.tokens["other"] = user("other", audience)
	kept := func() int {
		b.answers.mu.Lock()
		defer b.answers.mu.Unlock()
		return len(b.answers.kept)
	}
	first := b.ask("/v1/flux").Body.String()
	if second := b.askAs("other", "/v1/flux").Body.String(); second != first || kept() != 1 {
		t.Errorf("%d are kept, %s", kept(), second)
	}
	b.put(member("east")) // nothing differs, as in a heartbeat
	b.ask("/v1/flux?labelSelector=tier%3Dgold")
	b.ask("/v1/clusters.json")
	if kept() != 3 {
		t.Errorf("%d are kept", kept())
	}
	b.put(member("west"))
	if got := b.ask("/v1/flux").Body.String(); !strings.Contains(got, "west") || kept() != 1 {
		t.Errorf("%d are kept, %s", kept(), got)
	}
}

// TestShortAnswers expects answers that have nothing to take no more memory than others, however many are
// asked for.
func TestShortAnswers(t *testing.T) {
	a := newAnswers()
	most := 0
	for i := range uint64(600_000) {
		var key asking
		binary.BigEndian.PutUint64(key[:], i)
		a.put(1, key, []byte(`{"clusters":[]}`+"\n\n"))
		most = max(most, len(a.kept))
	}
	// A map has up to twice as many places as entries, each with a hash and a slice, next to the answer.
	if taken := most * (2*(len(asking{})+24) + 32); taken > maxKept {
		t.Errorf("%d are kept, which takes %d MiB", most, taken>>20)
	}
}
