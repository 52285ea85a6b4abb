package registryclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestBound asks servers that do not stop to answer, and one that does in time.
func TestBound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := maxAnswer + 1<<20
		if r.URL.Query().Has("fits") {
			size = maxAnswer
		}
		_, _ = io.CopyN(w, endless{}, int64(size))
	}))
	defer server.Close()
	client := &http.Client{Transport: Bound(http.DefaultTransport)}
	for _, test := range []struct {
		reason, path string
		read         int64
		refused      bool
	}{
		{"a registry that does not stop", base + "/clusters", maxAnswer, true},
		{"a registry that answers in full", base + "/clusters?fits", maxAnswer, false},
		{"others are not limited", "/apis/example.org/v1/things", maxAnswer + 1<<20, false},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if n != test.read || (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "is longer than 32 MiB") {
			t.Errorf("%s: %d bytes, %v", test.reason, n, err)
		}
	}
	registry, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.Verify(t.Context(), []string{"v1beta1"}); err == nil || !strings.Contains(err.Error(), "is longer than 32 MiB") {
		t.Errorf("a client reads on: %v", err)
	}
}

// endless is what a hostile server has to say.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
