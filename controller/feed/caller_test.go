package feed

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
)

// TestTokens expects tokens that are meant for this server, and no others.
func TestTokens(t *testing.T) {
	for reason, test := range map[string]struct {
		header http.Header
		status authenticationv1.TokenReviewStatus
		want   int
	}{
		"a token for this server":         {http.Header{"Authorization": {"Bearer t"}}, user("a", audience), http.StatusOK},
		"one that is for others, too":     {http.Header{"Authorization": {"bearer t"}}, user("a", "https://other", audience), http.StatusOK},
		"one for the API server":          {http.Header{"Authorization": {"Bearer t"}}, user("a", "https://kubernetes.default.svc.cluster.local"), http.StatusUnauthorized},
		"no audience":                     {http.Header{"Authorization": {"Bearer t"}}, user("a"), http.StatusUnauthorized},
		"an audience that begins alike":   {http.Header{"Authorization": {"Bearer t"}}, user("a", audience+".example.com"), http.StatusUnauthorized},
		"not authenticated":               {http.Header{"Authorization": {"Bearer t"}}, authenticationv1.TokenReviewStatus{Audiences: []string{audience}, User: authenticationv1.UserInfo{Username: "a"}}, http.StatusUnauthorized},
		"no user":                         {http.Header{"Authorization": {"Bearer t"}}, user("", audience), http.StatusUnauthorized},
		"an error":                        {http.Header{"Authorization": {"Bearer t"}}, authenticationv1.TokenReviewStatus{Authenticated: true, Error: "x", Audiences: []string{audience}, User: authenticationv1.UserInfo{Username: "a"}}, http.StatusUnauthorized},
		"no header":                       {http.Header{}, user("a", audience), http.StatusUnauthorized},
		"a password":                      {http.Header{"Authorization": {"Basic t"}}, user("a", audience), http.StatusUnauthorized},
		"two tokens":                      {http.Header{"Authorization": {"Bearer t", "Bearer t"}}, user("a", audience), http.StatusUnauthorized},
		"a token of megabytes":            {http.Header{"Authorization": {"Bearer " + strings.Repeat("t", maxToken+1)}}, user("a", audience), http.StatusUnauthorized},
		"a name that another server says": {http.Header{"X-Remote-User": {"a"}, "Impersonate-User": {"a"}}, user("a", audience), http.StatusUnauthorized},
	} {
		b := newBench(t)
		b.put(member("east"))
		b.tokens["t"] = test.status
		got := b.send(http.MethodGet, "/v1/clusters.json", test.header)
		if got.Code != test.want || (got.Header().Get("WWW-Authenticate") != "") != (test.want == http.StatusUnauthorized) || strings.Contains(got.Body.String(), "east") != (test.want == http.StatusOK) {
			t.Errorf("%s: %d %v, %s", reason, got.Code, got.Header(), got.Body)
		}
	}
}

// TestRequests expects nothing but reading, at the paths that there are.
func TestRequests(t *testing.T) {
	b := newBench(t)
	b.put(member("east"))
	header := http.Header{"Authorization": {"Bearer token"}}
	for request, want := range map[string]int{
		"GET /v1/clusters.json": 200, "HEAD /v1/flux": 200, "POST /v1/flux": 405, "DELETE /v1/flux": 405,
		"GET /": 404, "GET /v1": 404, "GET /v1/flux/": 404, "GET /v1/../v1/flux": 404, "GET /metrics": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		got := b.send(method, path, header)
		if got.Code != want || got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", request, got.Code, got.Header())
		}
	}
}

// TestTakenAway expects a token, or a permission, that is taken away to be of no use ten seconds later.
func TestTakenAway(t *testing.T) {
	for reason, test := range map[string]struct {
		takes func(*bench)
		want  int
	}{
		"the token": {func(b *bench) { delete(b.tokens, "token") }, http.StatusUnauthorized},
		"the permission": {func(b *bench) {
			b.may = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
				return authorizationv1.SubjectAccessReviewStatus{}, nil
			}
		}, http.StatusForbidden},
	} {
		b := newBench(t)
		b.put(member("east"))
		for range 10 {
			if got := b.ask("/v1/flux"); got.Code != http.StatusOK {
				t.Fatalf("%d: %s", got.Code, got.Body)
			}
		}
		if b.reviewed != 1 || b.asked != 1 {
			t.Errorf("%d tokens and %d permissions were reviewed for ten requests", b.reviewed, b.asked)
		}
		test.takes(b)
		b.time.Step(10*time.Second + time.Millisecond)
		if got := b.ask("/v1/flux"); got.Code != test.want {
			t.Errorf("%s is taken away: %d", reason, got.Code)
		}
	}
}

// TestStrangers expects requests without a valid token not to keep those with one waiting.
func TestStrangers(t *testing.T) {
	b := newBench(t)
	b.put(member("east"))
	if got := b.ask("/v1/flux"); got.Code != http.StatusOK {
		t.Fatal(got.Code)
	}
	codes := map[int]int{}
	for i := range 200 {
		codes[b.askAs("guess"+strconv.Itoa(i), "/v1/flux").Code]++
	}
	if codes[http.StatusTooManyRequests] < 100 || codes[http.StatusUnauthorized] < 5 || len(codes) != 2 || b.reviewed > 100 {
		t.Errorf("strangers: %v, %d reviews", codes, b.reviewed)
	}
	b.time.Step(time.Minute)
	if got := b.ask("/v1/flux"); got.Code != http.StatusOK {
		t.Errorf("a caller that was known: %d", got.Code)
	}
	b.tokens["new"] = user("new", audience)
	if got := b.from("198.51.100.7:4711").askAs("new", "/v1/flux"); got.Code != http.StatusOK {
		t.Errorf("a caller that was not known, from elsewhere: %d", got.Code)
	}
}

// TestManyTokens expects a user with many valid tokens to keep no other one waiting, whether it may list
// clusters or not.
func TestManyTokens(t *testing.T) {
	for _, lists := range []bool{true, false} {
		b := newBench(t)
		b.put(member("east"))
		b.identity.strangers = flowcontrol.NewFakeAlwaysRateLimiter()
		b.may = func(s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: lists || s.User == "flux"}, nil
		}
		codes := map[int]int{}
		for range 3 {
			for i := range 300 {
				token := "many" + strconv.Itoa(i)
				b.tokens[token] = user("many", audience)
				codes[b.from("10.0."+strconv.Itoa(i)+".1:1").askAs(token, "/v1/flux").Code]++
			}
			if got := b.from("198.51.100.7:1").ask("/v1/flux"); got.Code != http.StatusOK {
				t.Errorf("another user: %d", got.Code)
			}
			b.time.Step(lasting + time.Second)
		}
		if lists != (codes[http.StatusTooManyRequests] > 0) {
			t.Errorf("the user with many tokens, which may list: %v: %v", lists, codes)
		}
	}
}
