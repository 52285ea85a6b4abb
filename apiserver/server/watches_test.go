package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/apiserver/visibility"
)

// answer is how the answer to a request begins, and what ends it.
type answer struct {
	code   int
	header http.Header
	body   io.Reader
	end    context.CancelFunc
}

// TestWatchesOfAUser has one user open as many watches as there may be, and one more.
func TestWatchesOfAUser(t *testing.T) {
	o := small(t, visibility.Periods{Cache: time.Hour, Recheck: time.Hour})
	server := httptest.NewUnstartedServer(o.servers[0].Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	// begin asks for something, and returns how the answer begins.
	begin := func(as, query string) answer {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+apiGroup+"v1beta1/clusters"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("As", as)
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return answer{response.StatusCode, response.Header, response.Body, cancel}
	}
	opens := func(as string, want int) answer {
		t.Helper()
		a := begin(as, "?watch=true")
		if a.code != want {
			t.Fatalf("a watch is answered with %d, want %d", a.code, want)
		}
		return a
	}
	first := opens("root", http.StatusOK)
	for range mostWatches - 1 {
		opens("root", http.StatusOK)
	}
	refused := opens("root", http.StatusTooManyRequests)
	body, err := io.ReadAll(refused.body)
	if err != nil || refused.header.Get("Retry-After") == "" || !strings.Contains(string(body), "end some, or give its clients names of their own") {
		t.Errorf("refused with %v %s, %v", refused.header, body, err)
	}
	if list := begin("root", ""); list.code != http.StatusOK {
		t.Errorf("a list is answered with %d", list.code)
	}
	opens("ann,team", http.StatusOK)
	first.end()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		again := begin("root", "?watch=true")
		if again.code == http.StatusOK {
			break
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("after one has ended, another is answered with %d", again.code)
		}
	}
	opens("root", http.StatusTooManyRequests)
}
