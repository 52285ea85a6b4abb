package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// policy lets the page load what this server has, and nothing else. With trusted types that no
// one may make, a browser has no way from a text to markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers are those of every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

// guard lets through what the page of this process asks, and nothing else. A browser asks for
// anyone: each page that it shows can send requests to this port.
type guard struct {
	// hosts are what the header Host may be. A name that an attacker's DNS leads here is not
	// among them.
	hosts []string
	key   string
	next  http.Handler
}

// newKey returns a key that can't be guessed.
func newKey() string { return rand.Text() + rand.Text() }

// guarded returns a handler behind the guard.
func guarded(port int, key string, next *handler) http.Handler {
	suffix := ":" + strconv.Itoa(port)
	return &guard{hosts: []string{loopback + suffix, "localhost" + suffix}, key: key, next: next.routes()}
}

// ServeHTTP refuses a request, or passes it on.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	if code, text := g.refusal(r); code != 0 {
		http.Error(w, text, code)
		return
	}
	g.next.ServeHTTP(w, r)
}

// refusal returns why a request is refused, 0 when it is not.
func (g *guard) refusal(r *http.Request) (int, string) {
	data := strings.HasPrefix(r.URL.Path, "/api/")
	site := r.Header.Get("Sec-Fetch-Site")
	switch origin := r.Header.Get("Origin"); {
	case !slices.Contains(g.hosts, r.Host):
		return http.StatusMisdirectedRequest, "this page is served at " + g.hosts[0] + " only"
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, "only GET is allowed: the page is read-only"
	case origin != "" && origin != "http://"+r.Host, data && site != "" && site != "same-origin":
		return http.StatusForbidden, "another page may not ask this one"
	case data && !g.holds(r.Header.Get("Authorization")):
		return http.StatusUnauthorized, "the key is missing or is that of another run: open the URL that \"kubectl registry ui\" has printed"
	}
	return 0, ""
}

// holds reports whether a header has the key. It is a header, and not a cookie: browsers send
// a cookie of 127.0.0.1 to every port, and with requests that other pages make.
func (g *guard) holds(header string) bool {
	return subtle.ConstantTimeCompare([]byte(header), []byte("Bearer "+g.key)) == 1
}
