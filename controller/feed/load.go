package feed

import "sync"

const (
	// inflight is how many requests are answered at once, and inflightOf how many of them are one
	// caller's.
	inflight, inflightOf = 128, 4
	// maxWritten is how many bytes of answers are being written at once: clients may read slowly.
	maxWritten = 192 << 20
)

// load is what is being answered.
type load struct {
	mu              sync.Mutex
	requests, bytes int
	// callers has how many requests each caller makes.
	callers map[string]int
}

// places are what one request takes of that.
type places struct {
	server *Server
	in     bool
	caller string
	bytes  int
}

// enter begins a request; false while too many are answered.
func (p *places) enter() bool {
	load := &p.server.load
	load.mu.Lock()
	defer load.mu.Unlock()
	if load.requests >= inflight {
		return false
	}
	load.requests++
	p.in = true
	return true
}

// of makes it one of a caller; false while that makes too many.
func (p *places) of(who *caller) bool {
	load := &p.server.load
	load.mu.Lock()
	defer load.mu.Unlock()
	if load.callers[who.key] >= inflightOf {
		return false
	}
	load.callers[who.key]++
	p.caller = who.key
	return true
}

// takes has an answer be written; false while too much is.
func (p *places) takes(bytes int) bool {
	load := &p.server.load
	load.mu.Lock()
	defer load.mu.Unlock()
	if load.bytes > 0 && load.bytes+bytes > maxWritten {
		return false
	}
	load.bytes += bytes
	p.bytes = bytes
	return true
}

// leave ends the request.
func (p *places) leave() {
	load := &p.server.load
	load.mu.Lock()
	defer load.mu.Unlock()
	if p.in {
		load.requests--
	}
	load.bytes -= p.bytes
	if p.caller == "" {
		return
	}
	if load.callers[p.caller]--; load.callers[p.caller] == 0 {
		delete(load.callers, p.caller)
	}
}
