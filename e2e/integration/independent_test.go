package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/session"
)

// admins is the group that may do everything from the start.
var admins = []string{"clusterregistry:admins"}

// independent starts a registry on its own, and returns it with the authority
// of its clients and the configuration of an administrator.
func independent(t *testing.T, flags ...string) (*framework.Registry, *framework.Authority, *rest.Config) {
	t.Helper()
	return independentOn(t, framework.StartEtcd(t, 1), flags...)
}

// independentOn is independent with a given etcd.
func independentOn(t *testing.T, etcd *framework.Etcd, flags ...string) (*framework.Registry, *framework.Authority, *rest.Config) {
	t.Helper()
	clients := framework.NewAuthority(t, "clients")
	registry := framework.StartRegistry(t, slices.Concat([]string{"--mode=independent", "--client-ca-file=" + clients.File}, etcd.Flags(), flags)...)
	registry.WaitReady(t)
	return registry, clients, registry.Config(clients.Issue("root", admins))
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestIndependentClusters uses the API as its clients do, without any host.
func TestIndependentClusters(t *testing.T) {
	t.Parallel()
	registry, authority, config := independent(t)
	testAPI(t, config)
	t.Run("kubectl", func(t *testing.T) { session.Run(t, registry.Kubeconfig(t, authority.Issue("root", admins))) })
}

// whoami returns what the server takes the bearer of a configuration for.
func whoami(ctx context.Context, t *testing.T, config *rest.Config) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := clientset(t, config).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func TestIndependentRefusesStrangers(t *testing.T) {
	t.Parallel()
	registry, clients, admin := independent(t)
	for reason, config := range map[string]*rest.Config{
		"nobody":              registry.Config(framework.Pair{}),
		"another authority":   registry.Config(framework.NewAuthority(t, "clients").Issue("root", admins)),
		"an expired one":      registry.Config(clients.IssueExpired("root", admins)),
		"a front proxy's say": spoofed(registry),
		"an invented token":   withToken(registry, "invented"),
	} {
		if who, err := whoami(t.Context(), t, config); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: taken for %+v, %v", reason, who, err)
		}
	}
	for path, want := range map[string]struct{ anonymous, user, admin int }{
		"/livez": {200, 200, 200}, "/livez?exclude=etcd": {200, 200, 200}, "/readyz": {200, 200, 200}, "/healthz": {200, 200, 200},
		"/livez/etcd": {401, 403, 200}, "/metrics": {401, 403, 200}, "/debug/pprof/": {401, 403, 200},
		"/apis": {401, 200, 200}, "/version": {401, 200, 200}, "/openapi/v2": {401, 200, 200}, "/apis/clusterregistry.k8s.io/v1alpha1/clusters": {401, 403, 200},
	} {
		for who, test := range map[string]struct {
			config *rest.Config
			want   int
		}{
			"anonymous": {registry.Config(framework.Pair{}), want.anonymous},
			"a user":    {registry.Config(clients.Issue("ann", nil)), want.user},
			"an admin":  {admin, want.admin},
		} {
			if got := status(t, test.config, path); got != test.want {
				t.Errorf("GET %s by %s: %d, want %d", path, who, got, test.want)
			}
		}
	}
}

// spoofed returns a configuration of somebody who claims to be a front proxy.
func spoofed(registry *framework.Registry) *rest.Config {
	config := registry.Config(framework.Pair{})
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("X-Remote-User", "root")
			r.Header.Set("X-Remote-Group", admins[0])
			return next.RoundTrip(r)
		})
	}
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func withToken(registry *framework.Registry, token string) *rest.Config {
	config := registry.Config(framework.Pair{})
	config.BearerToken = token
	return config
}

func status(t *testing.T, config *rest.Config, path string) int {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestIndependentFollowsItsClientCA replaces the CA of the clients, as its
// rotation does: first both, then the new one alone.
func TestIndependentFollowsItsClientCA(t *testing.T) {
	t.Parallel()
	before, after := framework.NewAuthority(t, "before"), framework.NewAuthority(t, "after")
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(before.PEM)
	registry := framework.StartRegistry(t, append(framework.StartEtcd(t, 1).Flags(), "--mode=independent", "--client-ca-file="+file)...)
	registry.WaitReady(t)
	old, renewed := before.Issue("old", nil), after.Issue("new", nil)
	known := func(pair framework.Pair, want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			if who, err := whoami(ctx, t, registry.Config(pair)); (err == nil) != want {
				return fmt.Errorf("taken for %q: %w", who.Username, err)
			}
			return nil
		}
	}
	if err := errorsOf(t, known(old, true), known(renewed, false)); err != nil {
		t.Fatal(err)
	}
	write(append(append([]byte{}, before.PEM...), after.PEM...))
	framework.Eventually(t, "the new CA to count", known(renewed, true))
	if err := errorsOf(t, known(old, true)); err != nil {
		t.Fatal(err)
	}
	write(after.PEM)
	framework.Eventually(t, "the old CA to count no more", known(old, false))
	if err := errorsOf(t, known(renewed, true)); err != nil {
		t.Fatal(err)
	}
}

func errorsOf(t *testing.T, checks ...func(context.Context) error) error {
	t.Helper()
	for _, check := range checks {
		if err := check(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

// TestIndependentTokens authenticates by the tokens of two issuers, and follows
// changes of the file that names them.
func TestIndependentTokens(t *testing.T) {
	t.Parallel()
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
	one, other := framework.StartIssuer(t), framework.StartIssuer(t)
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	write := func(content string) {
		t.Helper()
		// As a mounted ConfigMap does, replace the file rather than write into it.
		if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(header + one.Authenticator("one:"))
	registry, _, admin := independent(t, "--authentication-config="+file)
	person := map[string]any{"name": "ada", "groups": []string{"dev"}}
	as := func(issuer *framework.Issuer) func(context.Context) error {
		return func(ctx context.Context) error {
			who, err := whoami(ctx, t, withToken(registry, issuer.Token(time.Hour, person)))
			if err == nil && (who.Username != "ada" || len(who.Groups) != 2 || !strings.HasSuffix(who.Groups[0], ":dev") || who.Groups[1] != "system:authenticated") {
				return fmt.Errorf("taken for %+v", who)
			}
			return err
		}
	}
	framework.Eventually(t, "a token to be accepted", as(one))
	testDelegation(t, registry, admin, one.Token(time.Hour, person))

	for reason, token := range map[string]string{
		"an expired token":             one.Token(-time.Minute, person),
		"a token of an unknown issuer": other.Token(time.Hour, person),
		"a refused claim":              one.Token(time.Hour, map[string]any{"name": "ada", "blocked": true}),
		"a user of the system":         one.Token(time.Hour, map[string]any{"name": "system:apiserver"}),
		"an altered token":             one.Token(time.Hour, person) + "x",
	} {
		if who, err := whoami(t.Context(), t, withToken(registry, token)); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: taken for %+v, %v", reason, who, err)
		}
	}

	write(header + one.Authenticator("one:") + other.Authenticator(""))
	framework.Eventually(t, "the second issuer to count", func(ctx context.Context) error {
		_, err := whoami(ctx, t, withToken(registry, other.Token(time.Hour, map[string]any{"name": "bob"})))
		return err
	})
	if who, err := whoami(t.Context(), t, withToken(registry, other.Token(time.Hour, map[string]any{"name": "eve", "groups": []string{"system:masters"}}))); !apierrors.IsUnauthorized(err) {
		t.Errorf("an issuer made somebody a member of system:masters: %+v, %v", who, err)
	}
	write(header + "nonsense: true\n")
	framework.Eventually(t, "the server to say that the file is wrong", func(context.Context) error { return registry.Said("authentication configuration is not used") })
	if err := as(one)(t.Context()); err != nil {
		t.Errorf("after a wrong file: %v", err)
	}
	write(header + other.Authenticator("other:"))
	framework.Eventually(t, "the first issuer to count no more", func(ctx context.Context) error {
		if who, err := whoami(ctx, t, withToken(registry, one.Token(time.Hour, person))); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("taken for %+v, %w", who, err)
		}
		return nil
	})

	registry.Signal(t, syscall.SIGTERM)
	framework.Eventually(t, "the server to be on its way out", func(ctx context.Context) error {
		if err := clientset(t, registry.Config(framework.Pair{})).RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err == nil {
			return errors.New("/readyz is still ok")
		}
		return nil
	})
	if err := as(other)(t.Context()); err != nil {
		t.Errorf("a token while the server drains: %v", err)
	}
}

// testDelegation asks the registry whose a token is, and what its user may do, as a server
// that leaves both to it. Who may not ask is told so.
func testDelegation(t *testing.T, registry *framework.Registry, admin *rest.Config, token string) {
	t.Helper()
	ctx, c := t.Context(), clientset(t, admin)
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if _, err := clientset(t, withToken(registry, token)).AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user who may not review tokens: %v", err)
	}
	got, err := c.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !got.Status.Authenticated || got.Status.User.Username != "ada" {
		t.Fatalf("the review of a token: %+v, %v", got.Status, err)
	}
	if strange, err := c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token + "x"}}, metav1.CreateOptions{}); err != nil || strange.Status.Authenticated || strange.Status.Error == "" {
		t.Errorf("the review of an altered token: %+v, %v", strange.Status, err)
	}
	may := func(groups ...string) bool {
		t.Helper()
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: got.Status.User.Username, Groups: groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Group: "clusterregistry.k8s.io", Resource: "clusters"}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Allowed
	}
	if may(got.Status.User.Groups...) || !may(admins...) {
		t.Error("a user of no role may delete clusters, or a member of the administrators may not")
	}
}

// TestIndependentRefusesToStart gives the server what it can't work with.
func TestIndependentRefusesToStart(t *testing.T) {
	t.Parallel()
	etcd := "--etcd-servers=http://127.0.0.1:1"
	ca := "--client-ca-file=" + framework.NewAuthority(t, "clients").File
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "authentication.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--authentication-config=" + path
	}
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	for want, flags := range map[string][]string{
		"no etcd answers at http://127.0.0.1:1":                      {"--mode=independent", etcd, ca},
		"no one could be authenticated":                              {"--mode=independent", etcd},
		"--kubeconfig has no effect in --mode=independent":           {"--mode=independent", etcd, ca, "--kubeconfig=x"},
		"--authentication-config has no effect in --mode=aggregated": {"--mode=aggregated", etcd, "--authentication-config=x"},
		"--mode is required":                                         {etcd, ca},
		"no such file":                                               {"--mode=independent", etcd, "--authentication-config=/none"},
		`unknown field \"nonsense\"`:                                 {"--mode=independent", etcd, file(header + "nonsense: true\n")},
		"jwt[0].issuer.url":                                          {"--mode=independent", etcd, file(header + "jwt:\n- issuer: {audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: \"\"}}\n")},
		"choose another prefix":                                      {"--mode=independent", etcd, file(header + "jwt:\n- issuer: {url: \"https://x\", audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: \"system:\"}}\n")},
		"remove the field":                                           {"--mode=independent", etcd, file(header + "anonymous: {enabled: true}\n")},
	} {
		if said := framework.StartRegistry(t, flags...).WaitRefused(t); !strings.Contains(said, want) {
			t.Errorf("%v: %q is missing in: %s", flags, want, said)
		}
	}
}
