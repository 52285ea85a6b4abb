package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Front is a proxy before a server on loopback, with TLS, through which faults come to the
// server's clients.
type Front struct {
	// URL is the proxy's, and CA signs its certificate.
	URL string
	CA  *Authority

	mu sync.Mutex
	// guard reports whether a request may pass, and has answered it when it may not.
	guard func(w http.ResponseWriter, r *http.Request) bool
	fault Fault
}

// Fault stands between a client and the server, which is next.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// StartFront starts a proxy that ends with the test. It passes on requests as they are, the
// name of the host included, which clients may have signed. Without a CA, the server behind
// it speaks plain HTTP, and its address is returned by behind, which gets the proxy's.
func StartFront(t *testing.T, ca *Authority, behind func(front string) (server string)) *Front {
	t.Helper()
	f := &Front{CA: NewAuthority(t, "front-ca")}
	pair := f.CA.Issue("front", nil, "127.0.0.1")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.URL = "https://" + listener.Addr().String()
	target, err := url.Parse(behind(f.URL))
	if err != nil {
		t.Fatal(err)
	}
	// A connection that the server has closed after a fault is not used for the next request.
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	if ca != nil {
		transport.TLSClientConfig = trusting(ca)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Header.Set("X-Forwarded-Proto", "https")
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1.1, whose connections can be cut
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			guard, fault := f.guard, f.fault
			f.mu.Unlock()
			switch {
			case guard != nil && !guard(w, r):
			case fault == nil:
				proxy.ServeHTTP(w, r)
			default:
				fault(w, r, proxy)
			}
		}),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.ServeTLS(listener, pair.Cert, pair.Key) // it says that it was closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
		transport.CloseIdleConnections()
	})
	return f
}

// Between has a fault between clients and the server from now on; nil is none.
func (f *Front) Between(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *Front) guarded(guard func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.guard = guard
}

// Where returns a fault for some requests.
func (f Fault) Where(concerns func(r *http.Request) bool) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !concerns(r) {
			next.ServeHTTP(w, r)
			return
		}
		f(w, r, next)
	}
}

// Times returns a fault that passes after so many requests.
func (f Fault) Times(most int) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		most--
		over := most < 0
		mu.Unlock()
		if over {
			next.ServeHTTP(w, r)
			return
		}
		f(w, r, next)
	}
}

// Answer is a server that answers with an HTTP status and nothing else.
func Answer(status int) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that writes is not cut off
		w.WriteHeader(status)
	}
}

// Late is a server that takes its time.
func Late(by time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// CutRequest breaks the connection after so many bytes of a request's body, of which the
// server gets nothing: versitygw v1.7.0 keeps, now and then, what it got of a body that was
// cut as if it was whole, so no outcome could be expected.
func CutRequest(bytes int64) Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.CopyN(io.Discard, r.Body, bytes)
		panic(http.ErrAbortHandler)
	}
}

// CutAnswer breaks the connection after so many bytes of the answer's body; without any,
// the server has done what was asked, and the client never learns it.
func CutAnswer(bytes int) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutWriter{w, bytes}, r)
		panic(http.ErrAbortHandler)
	}
}

// DamageRequest changes a byte of a request's body, and DamageAnswer one of the answer's.
func DamageRequest(w http.ResponseWriter, r *http.Request, next http.Handler) {
	r.Body = &damagedBody{ReadCloser: r.Body}
	next.ServeHTTP(w, r)
}

// DamageAnswer changes a byte of an answer's body.
func DamageAnswer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(&damagedWriter{ResponseWriter: w}, r)
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left <= 0 && err == nil {
		_ = http.NewResponseController(c.ResponseWriter).Flush() // what was written reaches the client
		panic(http.ErrAbortHandler)
	}
	return n, err
}

type damagedBody struct {
	io.ReadCloser
	done bool
}

func (d *damagedBody) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if n > 0 && !d.done {
		p[n/2] ^= 1
		d.done = true
	}
	return n, err
}

type damagedWriter struct {
	http.ResponseWriter
	done bool
}

func (d *damagedWriter) Write(p []byte) (int, error) {
	if len(p) > 0 && !d.done {
		p = append([]byte{}, p...)
		p[len(p)/2] ^= 1
		d.done = true
	}
	return d.ResponseWriter.Write(p)
}

func trusting(ca *Authority) *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// awaitServer waits until a server answers, whatever it says. Without a CA it speaks plain HTTP.
func awaitServer(t *testing.T, address string, ca *Authority) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if ca != nil {
		transport.TLSClientConfig = trusting(ca)
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: transport}
	Eventually(t, address+" to answer", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}
