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
	callers         map[string]*share
}

// share is what one caller takes.
type share struct {
	requests int
	// turn is held while it is asked what the caller sees.
	turn chan struct{}
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

// of makes it one of a caller, whose turn it returns; nil while that makes too many.
func (p *places) of(who *caller) chan struct{} {
	load := &p.server.load
	load.mu.Lock()
	defer load.mu.Unlock()
	of := load.callers[who.key]
	if of == nil {
		of = &share{turn: make(chan struct{}, 1)}
		load.callers[who.key] = of
	}
	if of.requests >= inflightOf {
		return nil
	}
	of.requests++
	p.caller = who.key
	return of.turn
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
	of := load.callers[p.caller]
	if of.requests--; of.requests == 0 {
		delete(load.callers, p.caller)
	}
}
