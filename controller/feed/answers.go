package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

const (
	// maxKept is how many bytes of answers are kept.
	maxKept = 64 << 20
	// making is how many answers are made at once.
	making = 2
)

// answers keeps answers as long as nothing changes: many callers ask for the same, again and again.
type answers struct {
	turns chan struct{}

	mu       sync.Mutex
	revision int64
	bytes    int
	kept     map[string][]byte
}

func newAnswers() *answers {
	return &answers{turns: make(chan struct{}, making), kept: map[string][]byte{}}
}

func (a *answers) get(revision int64, key string) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revision != revision {
		return nil, false
	}
	kept, ok := a.kept[key]
	return kept, ok
}

func (a *answers) put(revision int64, key string, answer []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if revision > a.revision {
		a.revision, a.bytes, a.kept = revision, 0, map[string][]byte{}
	}
	if _, already := a.kept[key]; already || revision < a.revision {
		return
	}
	if a.bytes+len(answer) > maxKept { // what is asked for again is kept again
		a.bytes, a.kept = 0, map[string][]byte{}
	}
	a.kept[key] = answer
	a.bytes += len(answer)
}

// answer returns what a caller sees of a snapshot, in a format.
func (s *Server) answer(ctx context.Context, in form, of snapshot, seen sight, asked query) ([]byte, error) {
	key := in.name + "\n" + seen.key() + "\n" + asked.key()
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
