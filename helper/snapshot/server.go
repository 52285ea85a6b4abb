package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterregistry/operator/helper/child"
)

// Server is an etcd that is started for a while, on data that no one else uses. It serves on
// loopback alone, and only those who have the certificate that was made for it.
type Server struct {
	// Etcd is how to reach it.
	Etcd
	stop  context.CancelFunc
	ended chan error
	log   *tail
}

// StartServer starts a program, which is etcd, on a data dir, and returns before it is ready.
// Its certificate and key are written to another directory. It has no quota, and it ends with
// the context or this process.
func StartServer(ctx context.Context, program, dataDir, dir string, args ...string) (*Server, error) {
	files, err := selfSigned(dir)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := child.Command(ctx, program, append([]string{
		"--data-dir=" + dataDir, "--log-level=warn",
		// By a quota that is lower than the member's own, it would raise an alarm, which becomes a
		// part of the data.
		"--quota-backend-bytes=-1",
		"--listen-client-urls=https://" + address, "--advertise-client-urls=https://" + address, "--listen-peer-urls=http://127.0.0.1:0",
		"--cert-file=" + files.Cert, "--key-file=" + files.Key, "--trusted-ca-file=" + files.CA, "--client-cert-auth",
	}, args...)...)
	s := &Server{Etcd: Etcd{Endpoints: []string{"https://" + address}, Files: files}, stop: cancel, ended: make(chan error, 1), log: &tail{}}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() { s.ended <- cmd.Wait(); close(s.ended) }()
	return s, nil
}

// Stop kills it, and returns when it has ended.
func (s *Server) Stop() {
	s.stop()
	for range s.ended {
	}
}

// Log returns the end of what it has written, in one line and without stack traces.
func (s *Server) Log() string {
	return strings.TrimSuffix(lastLines([]byte(messages(s.log.bytes()))), ";")
}

// Ready waits until it answers a linearizable read, for which it replays its log and reads all
// keys. The error says that it has ended, or did not answer within the given time.
func (s *Server) Ready(ctx context.Context, within time.Duration) error {
	return s.await(ctx, within, func(ctx context.Context) error {
		_, err := s.choose(ctx)
		return err
	})
}

// await asks it again and again, until it answers. The error has what it has written.
func (s *Server) await(ctx context.Context, within time.Duration, ask func(context.Context) error) error {
	err := await(ctx, s.ended, within, ask)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // which has ended it, too
	}
	if early := new(endedError); errors.As(err, &early) {
		return fmt.Errorf("it has ended (%w): %s", early.error, s.Log())
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, s.Log())
	}
	return nil
}

// endedError is about an etcd that ended while it was needed.
type endedError struct{ error }

// ready waits until an etcd answers or has ended, which is an endedError.
func ready(ctx context.Context, etcd Etcd, ended <-chan error, within time.Duration) (from member, err error) {
	err = await(ctx, ended, within, func(ctx context.Context) (err error) {
		from, err = etcd.choose(ctx)
		return err
	})
	return from, err
}

// await asks an etcd again and again, until it answers or has ended, which is an endedError.
func await(ctx context.Context, ended <-chan error, within time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("etcd did not answer within %s", within))
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return &endedError{err}
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tail keeps the end of what is written.
type tail struct {
	lock sync.Mutex
	text []byte
}

// Write never fails.
func (t *tail) Write(text []byte) (int, error) {
	const most = 16 << 10
	t.lock.Lock()
	defer t.lock.Unlock()
	t.text = append(t.text, text...)
	if len(t.text) > 2*most {
		t.text = append([]byte(nil), t.text[len(t.text)-most:]...)
	}
	return len(text), nil
}

// bytes returns a copy of what is kept.
func (t *tail) bytes() []byte {
	t.lock.Lock()
	defer t.lock.Unlock()
	return slices.Clone(t.text)
}

// messages returns what etcd's log says, a message in each line: of entries in JSON, the message
// and the error, and of a panic what comes before the goroutines.
func messages(log []byte) string {
	var out []string
	trace := false
	for line := range strings.Lines(string(log)) {
		var entry struct {
			Message string `json:"msg"`
			Error   string `json:"error"`
		}
		switch err := json.Unmarshal([]byte(line), &entry); {
		case err == nil && entry.Error != "":
			out, trace = append(out, entry.Message+": "+entry.Error+";"), false
		case err == nil:
			out, trace = append(out, entry.Message+";"), false
		default:
			if trace = trace || strings.HasPrefix(line, "goroutine "); !trace {
				out = append(out, line)
			}
		}
	}
	return strings.Join(out, "\n")
}
