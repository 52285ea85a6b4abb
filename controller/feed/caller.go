package feed

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

const (
	// lasting is how long what the host cluster says of a token, or of a permission, is
	// relied on.
	lasting = 10 * time.Second
	// remembered is how long a token that had an answer has its reviews apart from those of
	// tokens that never had: no one but its user keeps it waiting.
	remembered = 10 * time.Minute
	// maxToken is how long a token may be.
	maxToken = 16 << 10
	// maxTokens is how many are kept, as a hash.
	maxTokens = 4096
	// ofCredential is the prefix of what Kubernetes says of a token rather than of its user.
	ofCredential = "authentication.kubernetes.io/"
)

// caller is who makes a request.
type caller struct {
	authenticationv1.UserInfo
	// key tells callers apart who may have different permissions, and token the tokens of one.
	key, token string
}

// identity knows callers by their tokens.
type identity struct {
	// audience is whom a token must be for: one that is for the host cluster's API server is
	// not accepted, since who receives it could use it there.
	audience string
	reviews  authenticationv1client.TokenReviewInterface
	// callers bound the reviews per second of tokens that had answers lately, by whose they are,
	// and strangers those of others, and sources these by where they come from.
	callers, sources *utilcache.LRUExpireCache
	strangers        flowcontrol.PassiveRateLimiter
	clock            clock.PassiveClock

	// secret makes hashes of tokens useless elsewhere.
	secret []byte
	// found has the callers by token, and proven their keys where they had answers.
	found, proven *utilcache.LRUExpireCache
}

func newIdentity(audience string, reviews authenticationv1client.TokenReviewInterface, c clock.PassiveClock) (*identity, error) {
	secret := make([]byte, sha256.Size)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	kept := func() *utilcache.LRUExpireCache { return utilcache.NewLRUExpireCacheWithClock(maxTokens, c) }
	return &identity{
		audience: audience, reviews: reviews, secret: secret, clock: c, strangers: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(20, 40, c),
		callers: kept(), sources: kept(), found: kept(), proven: kept(),
	}, nil
}

// tokenOf returns the token of a request, "" for none.
func tokenOf(r *http.Request) string {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken || strings.ContainsAny(token, " ,") {
		return ""
	}
	return token
}

// of returns who makes a request, and nil for no one who is known.
func (i *identity) of(ctx context.Context, r *http.Request) (*caller, error) {
	token := tokenOf(r)
	if token == "" {
		return nil, nil
	}
	sum := hmac.New(sha256.New, i.secret)
	sum.Write([]byte(token))
	key := hex.EncodeToString(sum.Sum(nil))
	if kept, ok := i.found.Get(key); ok {
		return kept.(*caller), nil
	}
	if !i.accepts(key, source(r.RemoteAddr)) {
		return nil, refusal{http.StatusTooManyRequests, "too many tokens are reviewed at once"}
	}
	review, err := i.reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{i.audience}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, unavailable("the host cluster can't be asked whose the token is")
	}
	found := i.read(review.Status)
	if found != nil {
		found.token = key
	}
	i.found.Add(key, found, lasting)
	return found, nil
}

// answered notes that a caller has an answer. A token alone says little: whoever may create tokens of
// any ServiceAccount has as many as it likes.
func (i *identity) answered(who *caller) {
	i.proven.Add(who.token, who.key, remembered)
}

// accepts reports whether a token may be reviewed now. One that never had an answer may be from anyone:
// those of one source keep no other source waiting.
func (i *identity) accepts(token, from string) bool {
	if who, ok := i.proven.Get(token); ok {
		return i.bucket(i.callers, who.(string), 5, 20).TryAccept()
	}
	return i.bucket(i.sources, from, 1, 10).TryAccept() && i.strangers.TryAccept()
}

// bucket returns the limiter of one of many.
func (i *identity) bucket(of *utilcache.LRUExpireCache, key string, perSecond float32, burst int) flowcontrol.PassiveRateLimiter {
	kept, ok := of.Get(key)
	if !ok {
		kept = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(perSecond, burst, i.clock)
		of.Add(key, kept, remembered)
	}
	return kept.(flowcontrol.PassiveRateLimiter)
}

// read returns the caller that a review is of, nil for none. An authenticator that knows no
// audiences says none, and then the token is for the API server.
func (i *identity) read(status authenticationv1.TokenReviewStatus) *caller {
	if !status.Authenticated || status.Error != "" || status.User.Username == "" || !slices.Contains(status.Audiences, i.audience) {
		return nil
	}
	who := status.User
	// All tokens of a user are one caller: a ServiceAccount may have one for each of many pods.
	who.Extra = maps.Clone(who.Extra)
	maps.DeleteFunc(who.Extra, func(key string, _ authenticationv1.ExtraValue) bool { return strings.HasPrefix(key, ofCredential) })
	content, err := json.Marshal([]any{who.Username, who.UID, slices.Sorted(slices.Values(who.Groups)), who.Extra})
	if err != nil {
		return nil // no text can't be written as JSON
	}
	sum := sha256.Sum256(content)
	return &caller{UserInfo: who, key: hex.EncodeToString(sum[:])}
}

// refusal is why a request has no answer.
type refusal struct {
	status int
	words  string
}

func (r refusal) Error() string { return r.words }

// unavailable is why no complete answer can be given now.
func unavailable(why string) error {
	return refusal{http.StatusServiceUnavailable, why}
}
