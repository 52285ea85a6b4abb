package server

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/fake"
)

func hostTrust(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: trustNamespace, Name: trustName}, Data: data}
}

// TestFrontProxyIsJudgedAgain changes what the host says of its front proxy while
// the server runs.
func TestFrontProxyIsJudgedAgain(t *testing.T) {
	ca, _ := authority(t)
	next, _ := authority(t)
	users, _ := authority(t)
	good := map[string]string{"requestheader-client-ca-file": ca, "requestheader-allowed-names": `["front-proxy"]`, "requestheader-username-headers": `["X-Remote-User"]`, "client-ca-file": users}
	options := genericoptions.NewDelegatingAuthenticationOptions()
	for _, test := range []struct {
		reason  string
		change  map[string]string
		adopted bool
	}{
		{"nothing", nil, true},
		{"another name", map[string]string{"requestheader-allowed-names": `["other"]`}, true},
		{"another CA beside the old one", map[string]string{"requestheader-client-ca-file": ca + next}, true},
		{"any name", map[string]string{"requestheader-allowed-names": `[]`}, false},
		{"no names", map[string]string{"requestheader-allowed-names": ""}, false},
		{"the users' CA", map[string]string{"requestheader-client-ca-file": users}, false},
		{"the front proxy's CA for users", map[string]string{"client-ca-file": users + ca}, false},
		{"no CA", map[string]string{"requestheader-client-ca-file": ""}, false},
		{"nonsense for a CA", map[string]string{"requestheader-client-ca-file": "nonsense"}, false},
		{"nonsense for names", map[string]string{"requestheader-allowed-names": "nonsense"}, false},
		{"no header for users", map[string]string{"requestheader-username-headers": "[]"}, false},
	} {
		first, err := trustOf(hostTrust(good), options)
		if err != nil {
			t.Fatal(err)
		}
		known, err := followFrontProxy(fake.NewClientset(), options, first)
		if err != nil {
			t.Fatal(err)
		}
		data := maps.Clone(good)
		maps.Copy(data, test.change)
		known.CAContentProvider.(*frontProxy).follow(hostTrust(data))
		want := good
		if test.adopted {
			want = data
		}
		wanted, err := trustOf(hostTrust(want), options)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(known.CAContentProvider.CurrentCABundleContent()); got != want["requestheader-client-ca-file"] {
			t.Errorf("%s: the CA is\n%s", test.reason, got)
		}
		if got := known.AllowedClientNames.Value(); !slices.Equal(got, wanted.allowedNames) {
			t.Errorf("%s: the names are %q, want %q", test.reason, got, wanted.allowedNames)
		}
		if got := known.UsernameHeaders.Value(); !slices.Equal(got, wanted.userHeaders) {
			t.Errorf("%s: the headers are %q, want %q", test.reason, got, wanted.userHeaders)
		}
		if _, ok := known.CAContentProvider.VerifyOptions(); !ok {
			t.Errorf("%s: no certificate can be verified", test.reason)
		}
	}
}

// TestFrontProxyIsFollowed has the server learn of a change by itself.
func TestFrontProxyIsFollowed(t *testing.T) {
	ca, _ := authority(t)
	next, _ := authority(t)
	data := map[string]string{"requestheader-client-ca-file": ca, "requestheader-allowed-names": `["front-proxy"]`, "requestheader-username-headers": `["X-Remote-User"]`}
	host, options := fake.NewClientset(hostTrust(data)), genericoptions.NewDelegatingAuthenticationOptions()
	first, err := readTrust(t.Context(), options, host)
	if err != nil {
		t.Fatal(err)
	}
	known, err := followFrontProxy(host, options, first)
	if err != nil {
		t.Fatal(err)
	}
	proxy := known.CAContentProvider.(*frontProxy)
	if got := string(proxy.CurrentCABundleContent()); got != ca {
		t.Errorf("before anything is followed, the CA is\n%s", got)
	}
	changed := make(listener, 10)
	proxy.AddListener(changed)
	go proxy.Run(t.Context(), 1)
	data["requestheader-client-ca-file"] = next
	if _, err := host.CoreV1().ConfigMaps(trustNamespace).Update(t.Context(), hostTrust(data), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if got := string(proxy.CurrentCABundleContent()); got != next {
		t.Errorf("the CA is\n%s", got)
	}
}

// listener is told when a CA was read.
type listener chan struct{}

func (l listener) Enqueue() { l <- struct{}{} }

// TestAnonymousReach asks as somebody whom nobody vouches for.
func TestAnonymousReach(t *testing.T) {
	requests, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{Anonymous: anonymousReach(openPaths)}.New()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/livez": true, "/readyz?verbose": true, "/healthz": true, "/version": true,
		"/": false, "/livez/etcd": false, "/apis": false, "/metrics": false, "/version/x": false, "/apis/clusterregistry.k8s.io/v1beta1/clusters": false,
	} {
		_, ok, err := requests.AuthenticateRequest(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if ok != want || err != nil {
			t.Errorf("%s: let in: %t, %v", path, ok, err)
		}
	}
}
