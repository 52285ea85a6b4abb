package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	watchers = 100
	// lost is how long an event may take before it counts as lost.
	lost = time.Minute
)

// fanOut creates clusters one after the other, each as soon as all watchers
// have seen the one before. A latency is the time from the sending of the
// request until the last watcher has read the event.
func (c *contestant) fanOut(t *testing.T, window time.Duration) sample {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int64
	all := make(chan struct{}, 1)
	count := func(events int) {
		if seen.Add(int64(events))%watchers == 0 {
			all <- struct{}{}
		}
	}
	var group errgroup.Group
	for n, version := 0, c.listNames(t, url.Values{"limit": {"1"}}).ResourceVersion; n < watchers; n++ {
		stream := c.watch(ctx, t, c.connections[n%len(c.connections)], version)
		group.Go(func() error {
			defer func() { _ = stream.Close() }()
			if err := c.countEvents(stream, count); ctx.Err() == nil {
				return fmt.Errorf("%s: a watch ended: %w", c.name, err)
			}
			return nil
		})
	}
	var s sample
	s.costs, s.elapsed = c.account(t, func() {
		for deadline := time.Now().Add(window); time.Now().Before(deadline); {
			request, err := c.create(ctx, newName(len(s.latencies)), len(s.latencies))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := c.do(c.connections[0], request); err != nil {
				t.Fatal(err)
			}
			select {
			case <-all:
			case <-time.After(lost):
				t.Fatalf("%s: after %s, %d watchers have seen %d events of %d creations", c.name, lost, watchers, seen.Load(), len(s.latencies)+1)
			}
			s.latencies = append(s.latencies, time.Since(start))
		}
	})
	cancel()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	c.remove(t, len(s.latencies))
	return s
}

// watch opens a watch of all clusters from a version on.
func (c *contestant) watch(ctx context.Context, t *testing.T, connection *http.Client, version string) io.ReadCloser {
	t.Helper()
	request, err := c.get(ctx, "", url.Values{"watch": {"1"}, "resourceVersion": {version}})
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.open(connection, request)
	if err != nil {
		t.Fatal(err)
	}
	return response.Body
}

// countEvents reads a watch to its end and tells how many events came. In
// JSON each ends with a new line, in protobuf each starts with its length.
func (c *contestant) countEvents(stream io.Reader, count func(int)) error {
	if c.encoding.name == inJSON.name {
		buffer := make([]byte, 16<<10)
		for {
			n, err := stream.Read(buffer)
			if events := bytes.Count(buffer[:n], []byte("\n")); events > 0 {
				count(events)
			}
			if err != nil {
				return err
			}
		}
	}
	reader := bufio.NewReaderSize(stream, 16<<10)
	for {
		var length [4]byte
		if _, err := io.ReadFull(reader, length[:]); err != nil {
			return err
		}
		if _, err := reader.Discard(int(binary.BigEndian.Uint32(length[:]))); err != nil {
			return err
		}
		count(1)
	}
}
