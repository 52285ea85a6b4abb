package registryclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/internal/lookup"
	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

// TestNames has DNS fail, be silent for longer than a request may take, and answer again: that,
// and not the registry, is what is to be looked after.
func TestNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(list))
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	names := lookuptest.New("127.0.0.1")
	names.Everywhere(t)
	registry, err := New(&rest.Config{Host: "http://fleet-server.team.svc.:" + at.Port()})
	if err != nil {
		t.Fatal(err)
	}
	for _, does := range []lookuptest.Does{lookuptest.Fail, lookuptest.Ignore} {
		names.Turn(does)
		err := registry.Read(t.Context(), "v1beta1")
		if err == nil || !strings.Contains(err.Error(), "lookup fleet-server.team.svc.") || !strings.Contains(err.Error(), lookup.Advice) {
			t.Errorf("DNS is away (%d): %v", does, err)
		}
	}
	names.Turn(lookuptest.Answer)
	back, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	// The question that was not answered may still be open, and is not asked twice at a time.
	for err = registry.Read(back, "v1beta1"); err != nil && back.Err() == nil; err = registry.Read(back, "v1beta1") {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("DNS is back: %v", err)
	}
	server.Close()
	if err := registry.Read(t.Context(), "v1beta1"); err == nil || strings.Contains(err.Error(), lookup.Advice) {
		t.Errorf("the registry is away: %v", err)
	}
}
