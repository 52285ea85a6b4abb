package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrial has scripts in the place of etcdutl and etcd: a snapshot is refused only when
// it is the snapshot that they did not find in order.
func TestTrial(t *testing.T) {
	const fine = "exit 0"
	for _, test := range []struct {
		reason        string
		etcdutl, etcd string
		refused       bool
		says          string
	}{
		{"it is damaged", "echo Error: expected sha256 x, got y >&2; exit 1", fine, true, "restore the snapshot: exit status 1: Error: expected sha256 x, got y"},
		{"the disk is full", "echo write: No space left on device >&2; exit 1", fine, false, "No space left"},
		{"it was killed", "kill -9 $$", fine, false, "restore the snapshot: signal: killed"},
		{"etcd does not take it", fine, "echo panic: no such bucket >&2; exit 2", true, "start etcd on the restored snapshot: exit status 2: panic: no such bucket"},
		{"etcd was killed, as for its memory", fine, "kill -9 $$", false, "signal: killed"},
		{"the address was taken meanwhile", fine, "echo bind: address already in use >&2; exit 1", false, "address already in use"},
	} {
		scratch := t.TempDir()
		program := func(name, script string) string {
			path := filepath.Join(scratch, name)
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			return path
		}
		trial := Trial{Etcd: program("etcd", test.etcd), Etcdutl: program("etcdutl", test.etcdutl), Scratch: scratch}
		_, err := trial.Run(t.Context(), put(t, scratch, "a.db", []byte("x")), "/registry/", 9)
		if refused := new(RefusedError); err == nil || errors.As(err, &refused) != test.refused || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %s", test.reason, err, test.says)
		}
		if left, _ := filepath.Glob(filepath.Join(scratch, "trial-*")); len(left) > 0 {
			t.Errorf("%s: left are %v", test.reason, left)
		}
	}
}

// TestTrialIsCanceled says nothing about the snapshot, and waits for no etcd.
func TestTrialIsCanceled(t *testing.T) {
	scratch := t.TempDir()
	etcd := filepath.Join(scratch, "etcd")
	if err := os.WriteFile(etcd, []byte("#!/bin/sh\nexec sleep 3600\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Trial{Etcd: etcd, Etcdutl: "/bin/true", Scratch: scratch}.Run(ctx, put(t, scratch, "a.db", []byte("x")), "/registry/", 9)
	if refused := new(RefusedError); !errors.Is(err, context.Canceled) || errors.As(err, &refused) {
		t.Errorf("it was canceled: %v", err)
	}
}

// TestAlso is about what is asked of an etcd beside: an etcd that ends while it is asked ends
// the question, which would wait for it, and is what is wrong.
func TestAlso(t *testing.T) {
	crash, refusal := errors.New("exit status 1"), errors.New("no")
	for _, test := range []struct {
		reason string
		also   func(context.Context, Etcd) error
		ended  error
		want   error
	}{
		{"it is answered", func(context.Context, Etcd) error { return nil }, nil, nil},
		{"the answer is an error", func(context.Context, Etcd) error { return refusal }, nil, refusal},
		{"etcd ends meanwhile", func(ctx context.Context, _ Etcd) error { <-ctx.Done(); return ctx.Err() }, crash, crash},
	} {
		ended := make(chan error, 1)
		if test.ended != nil {
			ended <- test.ended
		}
		err := Trial{Also: test.also}.also(t.Context(), Etcd{}, ended)
		if early := new(endedError); errors.As(err, &early) {
			err = early.error
		} else if test.ended != nil {
			t.Errorf("%s: %v does not say that etcd has ended", test.reason, err)
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.reason, err, test.want)
		}
	}
}
