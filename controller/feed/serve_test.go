package feed

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"
)

// served runs a server at an address of this machine, which it returns, with the certificate in two
// files.
func (b *bench) served(cert, key string) string {
	b.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error)
	go func() { ended <- b.Serve(ctx, address, cert, key) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	})
	return address
}

// get asks a server for a path, and returns the status; 0 where it does not answer who trusts a
// certificate.
func get(t *testing.T, address string, trusted []byte, change func(*http.Request)) (status int, body string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "hub-controller.registries.svc"}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/v1/clusters.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token")
	if change != nil {
		change(request)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.ProtoMajor != 1 {
		t.Errorf("%v, %s", err, response.Proto)
	}
	return response.StatusCode, string(content)
}

// TestServe asks a server over TLS, whose certificate is replaced by one of another CA, and expects it to
// log nothing of requests.
func TestServe(t *testing.T) {
	var logged bytes.Buffer
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("v", "10")); err != nil {
		t.Fatal(err)
	}
	klog.SetOutput(&logged)
	directory := t.TempDir()
	cert, key := filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	replace := func() (trusted []byte) {
		content, private := certificate("hub-controller.registries.svc")
		for path, content := range map[string][]byte{key: private, cert: content} {
			if err := os.WriteFile(path+"~", content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+"~", path); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	before := replace()
	b := newBench(t)
	b.put(member("east"))
	address := b.served(cert, key)
	answers := func(trusted []byte) func() error {
		return func() error {
			if status, body := get(t, address, trusted, nil); status != http.StatusOK || !strings.Contains(body, `"east"`) {
				return fmt.Errorf("%d, %s", status, body)
			}
			return nil
		}
	}
	eventually(t, answers(before))
	for reason, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token":                    {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"another token":               {func(r *http.Request) { r.Header.Set("Authorization", "Bearer tokenish") }, http.StatusUnauthorized},
		"a header that is big":        {func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", 1<<16)) }, http.StatusRequestHeaderFieldsTooLarge},
		"a filter that can't be read": {func(r *http.Request) { r.URL.RawQuery = "labelSelector=a;token" }, http.StatusBadRequest},
	} {
		if status, body := get(t, address, before, test.change); status != test.want {
			t.Errorf("%s: %d, %s", reason, status, body)
		}
	}
	after := replace()
	eventually(t, answers(after))
	if status, _ := get(t, address, before, nil); status != 0 {
		t.Errorf("who trusts the former CA alone gets %d", status)
	}
	klog.Flush()
	if strings.Contains(logged.String(), "token") {
		t.Errorf("it has logged %s", logged.String())
	}
}

func eventually(t *testing.T, holds func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

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
	for range inflightOf {
		<-entered
	}
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
