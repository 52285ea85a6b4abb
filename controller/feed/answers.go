package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

const (
	// maxKept is how many bytes of answers are kept, and ofAnswer what each takes besides: one that
	// selects nothing is short.
	maxKept, ofAnswer = 64 << 20, 256
	// making is how many answers are made at once.
	making = 2
)

// answers keeps answers as long as nothing changes: many callers ask for the same, again and again.
type answers struct {
	turns chan struct{}

	mu       sync.Mutex
	revision int64
	bytes    int
	kept     map[asking][]byte
}

// asking is what an answer is to, as a hash: the sets of a caller, and what it selects by, may be long.
type asking [sha256.Size]byte

func newAnswers() *answers {
	return &answers{turns: make(chan struct{}, making), kept: map[asking][]byte{}}
}

func (a *answers) get(revision int64, key asking) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revision != revision {
		return nil, false
	}
	kept, ok := a.kept[key]
	return kept, ok
}

func (a *answers) put(revision int64, key asking, answer []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if revision > a.revision {
		a.revision, a.bytes, a.kept = revision, 0, map[asking][]byte{}
	}
	if _, already := a.kept[key]; already || revision < a.revision {
		return
	}
	if a.bytes+len(answer)+ofAnswer > maxKept { // what is asked for again is kept again
		a.bytes, a.kept = 0, map[asking][]byte{}
	}
	a.kept[key] = answer
	a.bytes += len(answer) + ofAnswer
}

// answer returns what a caller sees of a snapshot, in a format.
func (s *Server) answer(ctx context.Context, in form, of snapshot, seen sight, asked query) ([]byte, error) {
	key := asking(sha256.Sum256([]byte(in.name + "\n" + seen.key() + "\n" + asked.key())))
	if kept, ok := s.answers.get(of.revision, key); ok {
		return kept, nil
	}
	select {
	case s.answers.turns <- struct{}{}:
		defer func() { <-s.answers.turns }()
	case <-ctx.Done():
		return nil, unavailable("too many answers are made at once")
	}
	if kept, ok := s.answers.get(of.revision, key); ok {
		return kept, nil
	}
	out := &limited{limit: in.limit}
	err := in.write(s, out, func(yield func(*entry) bool) {
		for _, e := range of.entries {
			if seen.shows(e) && asked.selects(e) && !yield(e) {
				return
			}
		}
	})
	switch {
	case errors.Is(err, errLong):
		return nil, refusal{http.StatusBadRequest, fmt.Sprintf("the answer is longer than %d KiB, which is the most for this format: ask for fewer clusters with %s", in.limit>>10, selectorKey)}
	case err != nil:
		return nil, err
	}
	answer := bytes.Clone(out.Bytes()) // which takes what is counted of it
	s.answers.put(of.revision, key, answer)
	return answer, nil
}
