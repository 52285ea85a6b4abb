package framework

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// request sends one request. It runs to its end even when the load is stopped.
func (l *Load) request(n int, life *Life, s step) {
	start := time.Now()
	l.mu.Lock()
	in := l.phases[len(l.phases)-1]
	l.mu.Unlock()
	err := l.exchange(life, s)
	took := time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, n)
	in.took = append(in.took, took)
	if err != nil {
		life.InDoubt = s.writes()
		failure := fmt.Sprintf("at %s, after %s: %v", start.Format("15:04:05.000"), took.Round(time.Millisecond), err)
		in.fail(start, failure)
		l.failed = append(l.failed, failure)
		return
	}
	if s.writes() {
		l.writes++
	}
	l.idle = append(l.idle, life)
}

// fail counts a failure that is none of a scheduled request.
func (l *Load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	failure := fmt.Sprintf("at %s: %v", time.Now().Format("15:04:05.000"), err)
	l.phases[len(l.phases)-1].fail(time.Now(), failure)
	l.failed = append(l.failed, failure)
}

// exchange sends a step's request and has its life take the answer.
func (l *Load) exchange(life *Life, s step) error {
	for {
		code, answer, err := l.ask(life, s)
		if err != nil {
			return err
		}
		if code != http.StatusConflict || s.method != http.MethodPut || !l.rewritten {
			return life.took(s, code, answer)
		}
		if code, answer, err = l.ask(life, read); err != nil {
			return err
		}
		if err := life.conflicted(code, answer); err != nil {
			return err
		}
		l.mu.Lock()
		l.conflicts++
		l.mu.Unlock()
	}
}

// ask sends one HTTP request.
func (l *Load) ask(life *Life, s step) (status int, answer []byte, err error) {
	var content []byte
	if s.body != nil {
		if content, err = json.Marshal(s.body(life)); err != nil {
			return 0, nil, err
		}
	}
	url := s.url(l.url, life.Name)
	request, err := http.NewRequestWithContext(context.Background(), s.method, url, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", s.contentType)
	response, err := l.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("step %d: %w", life.step, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", s.method, url, err)
	}
	return response.StatusCode, answer, nil
}
