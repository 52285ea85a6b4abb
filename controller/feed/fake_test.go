package feed

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

const audience = "https://hub-controller.registries.svc"

// bench is a server with a registry and a host cluster of this process. Time passes when a test says
// so.
type bench struct {
	*Server
	t       *testing.T
	time    *testingclock.FakeClock
	entries cache.Indexer
	// answers are the results of probes by URL, where it is not that a server answers.
	found map[string]probe.Result
	// synced and trouble are whether the registry was read, and why it can't be watched.
	synced  bool
	trouble error
	// tokens are the answers to reviews of tokens, and reviewed counts the reviews; tokensFail is
	// why there is none.
	tokens     map[string]authenticationv1.TokenReviewStatus
	reviewed   int
	tokensFail error
	// remote is where requests are from, and may is the answer to reviews of permissions, and asked counts them: several are at once.
	remote string
	may    func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
	asked  int
	mu     sync.Mutex
}

const published = `{"labels": ["tier", "example.com/*"], "providers": [
	{"name": "sso", "hosts": ["*.example.com"], "backstage": {"authProvider": "oidc", "oidcTokenProvider": "okta"}},
	{"name": "plain", "hosts": ["*.example.com"]}]}`

// newBench returns one whose caller "token" may see all.
func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, time: testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), entries: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), found: map[string]probe.Result{}, synced: true, tokens: map[string]authenticationv1.TokenReviewStatus{}}
	settings, err := ParseSettings([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Settings: settings, Unwatched: func() error { return b.trouble }, Tokens: tokenReviews{b: b}, Reviews: accessReviews{b: b},
		Audience: audience, Clock: b.time, Say: func(contract.FunctionState, string) {},
		Probe: func(_ context.Context, of probe.Target) probe.Result {
			if found, ok := b.found[of.Endpoint.URL]; ok {
				return found
			}
			return probe.Result{Outcome: probe.Ready, Reason: probe.ReasonReady}
		},
	}
	for _, f := range change {
		f(&config)
	}
	if b.Server, err = newServer(config, lister.NewClusterLister(b.entries)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.verifier.Queue.ShutDown)
	b.fleet.synced = func() bool { return b.synced }
	b.fleet.recall(nil)
	b.tokens["token"] = user("flux", audience)
	b.may = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
	}
	return b
}

func user(name string, audiences ...string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: audiences, User: authenticationv1.UserInfo{Username: name, Groups: []string{"system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{ofCredential + "credential-id": {name + "1"}}}}
}

type tokenReviews struct {
	authenticationv1client.TokenReviewInterface
	b *bench
}

func (r tokenReviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.b.reviewed++
	if r.b.tokensFail != nil {
		return nil, r.b.tokensFail
	}
	if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != audience {
		r.b.t.Errorf("a token is reviewed for %q", review.Spec.Audiences)
	}
	review.Status = r.b.tokens[review.Spec.Token]
	return review, nil
}

type accessReviews struct {
	authorizationv1client.SubjectAccessReviewInterface
	b *bench
}

func (r accessReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.b.asked++
	var err error
	review.Status, err = r.b.may(review.Spec)
	return review, err
}

// from has requests come from an address.
func (b *bench) from(address string) *bench {
	b.remote = address
	return b
}

// askTwice requests the clusters again after the time that confirms what a caller may not see.
func (b *bench) askTwice(token string) *httptest.ResponseRecorder {
	b.t.Helper()
	if got := b.askAs(token, "/v1/clusters.json"); got.Code == http.StatusOK {
		return got
	}
	b.time.Step(settle)
	return b.askAs(token, "/v1/clusters.json")
}

// put writes entries to the registry, and has their endpoints asked.
func (b *bench) put(clusters ...*v1beta1.Cluster) {
	for _, cluster := range clusters {
		_ = b.entries.Add(cluster)
		b.changed(cluster)
		b.verifier.One(context.Background(), cluster.Name)
	}
}

// drop deletes entries.
func (b *bench) drop(names ...string) {
	for _, name := range names {
		gone, exists, _ := b.entries.GetByKey(name)
		if !exists {
			b.t.Fatalf("there is no cluster %q", name)
		}
		_ = b.entries.Delete(gone)
		b.changed(gone)
	}
}

// ask makes a request with the token of the caller that may see all.
func (b *bench) ask(path string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.askAs("token", path)
}

func (b *bench) askAs(token, path string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.send(http.MethodGet, path, http.Header{"Authorization": {"Bearer " + token}})
}

func (b *bench) send(method, path string, header http.Header) *httptest.ResponseRecorder {
	b.t.Helper()
	path, query, _ := strings.Cut(path, "?")
	request := httptest.NewRequestWithContext(b.t.Context(), method, path, nil)
	request.URL.RawQuery, request.Header = query, header
	if b.remote != "" {
		request.RemoteAddr = b.remote
	}
	out := httptest.NewRecorder()
	b.ServeHTTP(out, request)
	return out
}

// names are those of an answer in JSON.
func (b *bench) names(of *httptest.ResponseRecorder) string {
	b.t.Helper()
	var out []string
	for _, r := range b.records(of) {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

func (b *bench) records(of *httptest.ResponseRecorder) []record {
	b.t.Helper()
	var said struct{ Clusters []record }
	if of.Code != http.StatusOK {
		b.t.Fatalf("%d: %s", of.Code, of.Body)
	}
	if err := json.Unmarshal(of.Body.Bytes(), &said); err != nil {
		b.t.Fatal(err)
	}
	return said.Clusters
}

// member returns a cluster whose address may be published.
func member(name string, change ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, Labels: map[string]string{"tier": "gold", "secret": "x"}},
		Spec: v1beta1.ClusterSpec{
			ID: name + "-id", ClusterSet: "payments",
			Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com:6443", CABundle: ca}},
			Access:    []v1beta1.Access{{Name: "tokens", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: "sso"}}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// ca is a CA, in PEM.
var ca, _ = certificate("ca")

// certificate returns a new certificate for a host, which is its own CA, and its key, in PEM.
func certificate(host string) (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
