package ui

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

const testKey = "K3Y"

// testSite returns what is served, with a registry that is made up.
func testSite(t *testing.T) http.Handler {
	t.Helper()
	env := commandtest.New(t)
	return guarded(8421, testKey, &handler{
		feed: newFeed(time.Now), clusters: env.Clusters.ClusterregistryV1beta1().Clusters(), explain: env.Explain, now: time.Now,
	})
}

// TestGuard sends what a browser sends for the page, and what it sends for others.
func TestGuard(t *testing.T) {
	site := testSite(t)
	const own = "127.0.0.1:8421"
	for _, test := range []struct {
		reason, method, host, path string
		headers                    map[string]string
		want                       int
	}{
		{"the page", "GET", own, "/", nil, 200},
		{"the page, by a link elsewhere", "GET", own, "/", map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"the page by its other name", "GET", "localhost:8421", "/", nil, 200},
		{"the script", "GET", own, "/app.js", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"the page asks for data", "GET", own, "/api/clusters/east", map[string]string{"Authorization": "Bearer " + testKey, "Sec-Fetch-Site": "same-origin"}, 404},
		{"the page, by a browser that sends Origin", "GET", own, "/api/clusters/east", map[string]string{"Authorization": "Bearer " + testKey, "Origin": "http://" + own}, 404},
		{"no key", "GET", own, "/api/clusters/east", nil, 401},
		{"no key for the stream", "GET", own, "/api/stream", nil, 401},
		{"another key", "GET", own, "/api/stream", map[string]string{"Authorization": "Bearer " + testKey + "x"}, 401},
		{"a part of the key", "GET", own, "/api/stream", map[string]string{"Authorization": "Bearer K3"}, 401},
		{"the key as a cookie and in the URL", "GET", own, "/api/stream?key=" + testKey, map[string]string{"Cookie": "key=" + testKey}, 401},
		{"a name that someone's DNS leads here", "GET", "evil.example:8421", "/", nil, 421},
		{"such a name, with the key", "GET", "evil.example:8421", "/api/stream", map[string]string{"Authorization": "Bearer " + testKey}, 421},
		{"another port", "GET", "127.0.0.1:80", "/", nil, 421},
		{"no port", "GET", "127.0.0.1", "/", nil, 421},
		{"another origin, with the key", "GET", own, "/api/stream", map[string]string{"Authorization": "Bearer " + testKey, "Origin": "http://evil.example"}, 403},
		{"another port's origin", "GET", own, "/api/stream", map[string]string{"Authorization": "Bearer " + testKey, "Origin": "http://127.0.0.1:3000"}, 403},
		{"no origin", "GET", own, "/api/stream", map[string]string{"Authorization": "Bearer " + testKey, "Origin": "null"}, 403},
		{"another port's page", "GET", own, "/api/stream", map[string]string{"Authorization": "Bearer " + testKey, "Sec-Fetch-Site": "same-site"}, 403},
		{"POST", "POST", own, "/api/clusters/east", map[string]string{"Authorization": "Bearer " + testKey}, 405},
		{"DELETE", "DELETE", own, "/api/clusters/east", map[string]string{"Authorization": "Bearer " + testKey}, 405},
		{"HEAD", "HEAD", own, "/", nil, 405},
		{"a preflight", "OPTIONS", own, "/api/stream", map[string]string{"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}, 405},
		{"what the registry has", "GET", own, "/apis/clusterregistry.k8s.io/v1beta1/clusters", map[string]string{"Authorization": "Bearer " + testKey}, 404},
		{"what the registry has, below a cluster", "GET", own, "/api/clusters/east/status", map[string]string{"Authorization": "Bearer " + testKey}, 404},
		{"a path that leads out", "GET", own, "/api/clusters/..%2f..%2fnamespaces", map[string]string{"Authorization": "Bearer " + testKey}, 404},
		{"the sources", "GET", own, "/page.go", nil, 404},
	} {
		request := httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil)
		request.Host = test.host
		for name, value := range test.headers {
			request.Header.Set(name, value)
		}
		recorder := httptest.NewRecorder()
		site.ServeHTTP(recorder, request)
		if recorder.Code != test.want {
			t.Errorf("%s: %d, want %d: %s", test.reason, recorder.Code, test.want, recorder.Body)
		}
		for name := range recorder.Header() {
			if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
				t.Errorf("%s: the answer has %s", test.reason, name)
			}
		}
		for name, value := range headers {
			if got := recorder.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q", test.reason, name, got)
			}
		}
	}
}

// TestPolicy has scripts and styles come from files only, and requests go nowhere else.
func TestPolicy(t *testing.T) {
	for _, part := range strings.Split(policy, "; ") {
		name, value, _ := strings.Cut(part, " ")
		switch value {
		case "'self'", "'none'", "'script'":
		default:
			t.Errorf("%s is %s", name, value)
		}
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !slices.Contains(strings.Split(policy, "; "), part) {
			t.Errorf("the policy has no %q", part)
		}
	}
}

func TestNewKey(t *testing.T) {
	if a, b := newKey(), newKey(); a == b || len(a) < 50 {
		t.Errorf("%q, %q", a, b)
	}
}
