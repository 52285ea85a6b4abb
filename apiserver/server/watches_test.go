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

// TestWatchesOfAUser has one user open as many watches as there may be, and one more.
func TestWatchesOfAUser(t *testing.T) {
	o := small(t, visibility.Periods{Cache: time.Hour, Recheck: time.Hour})
	server := httptest.NewUnstartedServer(o.servers[0].Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	// begin asks for something, and returns the answer, of which the code and the headers are
	// there, and what ends the request.
	begin := func(as, query string) (*http.Response, context.CancelFunc) {
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
		return response, cancel
	}
	opens := func(as string, want int) (*http.Response, context.CancelFunc) {
		t.Helper()
		response, end := begin(as, "?watch=true")
		if response.StatusCode != want {
			t.Fatalf("a watch is answered with %s, want %d", response.Status, want)
		}
		return response, end
	}
	_, end := opens("root", http.StatusOK)
	for range mostWatches - 1 {
		opens("root", http.StatusOK)
	}
	refused, _ := opens("root", http.StatusTooManyRequests)
	body, err := io.ReadAll(refused.Body)
	if err != nil || refused.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "end some, or give its clients names of their own") {
		t.Errorf("refused with %v %s, %v", refused.Header, body, err)
	}
	if list, _ := begin("root", ""); list.StatusCode != http.StatusOK {
		t.Errorf("a list is answered with %s", list.Status)
	}
	opens("ann,team", http.StatusOK)
	end()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		response, _ := begin("root", "?watch=true")
		if response.StatusCode == http.StatusOK {
			break
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("after one has ended, another is answered with %s", response.Status)
		}
	}
	opens("root", http.StatusTooManyRequests)
}
