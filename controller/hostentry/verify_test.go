package hostentry

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

func TestHandshake(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are what is tested
	server.StartTLS()
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, test := range []struct {
		reason, url string
		bundle      []byte
		says        string
	}{
		{"its own", server.URL, bundle, ""},
		{"another CA", server.URL, nil, "certificate"},
		{"a bundle without a certificate", server.URL, []byte("?"), "CA bundle"},
		{"no one", strings.Replace(closed.URL, "http:", "https:", 1), bundle, "refused"},
		{"no https", closed.URL, bundle, "https"},
	} {
		err := handshake(t.Context(), &v1beta1.Endpoint{URL: test.url, CABundle: test.bundle}, test.url)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.says)
		}
	}
}

// TestUnreachedEndpoint publishes an address that can't be reached from here only if the
// host cluster's API server has a certificate for it, of the CA that is published with it.
func TestUnreachedEndpoint(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	unreachable := strings.Replace(closed.URL, "http:", "https:", 1) // for 127.0.0.1, as the certificate is
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, test := range []struct {
		reason, url, address string
		bundle               []byte
		says                 string
	}{
		{"no connection, and the right certificate", unreachable, server.URL, bundle, ""},
		{"no DNS, and the right certificate", "https://example.com.invalid", server.URL, bundle, `add it to cluster "home" yourself`},
		{"no connection, and another CA", unreachable, server.URL, nil, "was not verified in its place"},
		{"no connection, and no host cluster", unreachable, unreachable, bundle, "was not verified in its place"},
		{"no connection, and nothing to compare with", unreachable, "", bundle, `as the endpoint "host"`},
		{"a connection to someone else", server.URL, server.URL, nil, "correct registerHost.url"},
	} {
		b := newBench(nil)
		b.verify, b.URL, b.CABundle, b.Address = handshake, test.url, test.bundle, test.address
		err := b.Sync(t.Context())
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.says)
		}
		if published := len(b.get(t).Spec.Endpoints); published != map[bool]int{true: 1}[test.says == ""] {
			t.Errorf("%s: %d endpoints", test.reason, published)
		}
	}
	// What an administrator has entered themselves is taken as it is.
	b := newBench([]runtime.Object{&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: v1beta1.ClusterSpec{
		ID: id, Manager: &v1beta1.Manager{Name: Manager}, Endpoints: []v1beta1.Endpoint{{Name: "host", URL: unreachable, CABundle: bundle}},
	}}})
	b.verify, b.URL, b.CABundle = handshake, unreachable, bundle
	if err := b.Sync(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndpointStays expects that an endpoint that was published is replaced only by one
// that leads to the host cluster, and not withdrawn when none is known for a moment.
func TestEndpointStays(t *testing.T) {
	b := newBench(nil, clusterInfo("https://api.example.com"))
	verified := 0
	b.verify = func(context.Context, *v1beta1.Endpoint, string) error { verified++; return nil }
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	published := b.get(t).Spec.Endpoints[0]
	stays := func(reason string) {
		t.Helper()
		if c := b.get(t); len(c.Spec.Endpoints) != 1 || c.Spec.Endpoints[0].URL != "https://api.example.com" || !b.Own("home", published) {
			t.Errorf("%s: %+v, own: %v", reason, c.Spec.Endpoints, b.Own("home", published))
		}
	}
	away := true
	b.host.PrependReactor("get", "configmaps", func(kubetesting.Action) (bool, runtime.Object, error) {
		return away, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "cluster-info", errors.New("no"))
	})
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	stays("cluster-info can't be read")
	if away = false; verified != 1 {
		t.Errorf("what is published already was verified %d times", verified)
	}
	b.URL = "https://typo.example.com"
	b.verify = func(context.Context, *v1beta1.Endpoint, string) error { return errors.New("no such host") }
	if err := b.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "https://typo.example.com") || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("an address that leads nowhere: %v", err)
	}
	stays("the new address leads nowhere")
}

// TestUnverifiedEntry registers the host without an address when that leads nowhere.
func TestUnverifiedEntry(t *testing.T) {
	b := newBench(nil, clusterInfo("https://api.example.com"))
	b.verify = func(context.Context, *v1beta1.Endpoint, string) error { return errors.New("no such host") }
	if err := b.Sync(t.Context()); err == nil {
		t.Error("it doesn't say that the address leads nowhere")
	}
	if c := b.get(t); len(c.Spec.Endpoints) != 0 || c.Status.Version.Kubernetes != "v1.37.1" || b.Own("home", v1beta1.Endpoint{}) {
		t.Errorf("%+v, %+v", c.Spec, c.Status)
	}
}

// TestRetry looks again soon after an error, but not after a refusal.
func TestRetry(t *testing.T) {
	for _, test := range []struct {
		reason  string
		entries []runtime.Object
		broken  bool
		want    contract.FunctionState
		wait    time.Duration
	}{
		{"an error", nil, true, contract.FunctionFailing, retry},
		{"a refusal", []runtime.Object{&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "home"}}}, false, contract.FunctionRefused, time.Minute},
		{"success", nil, false, contract.FunctionRunning, time.Minute},
	} {
		b := newBench(test.entries)
		b.host.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) {
			return test.broken, nil, errors.New("away")
		})
		said := make(chan contract.FunctionState, 10)
		b.Say = func(state contract.FunctionState, _ string) { said <- state }
		fake := b.Clock.(*testingclock.FakeClock)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.Run(ctx) }()
		next := func() {
			t.Helper()
			select {
			case state := <-said:
				if state != test.want {
					t.Errorf("%s: %s, want %s", test.reason, state, test.want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: it doesn't look again", test.reason)
			}
		}
		waits := func() {
			for !fake.HasWaiters() {
				time.Sleep(time.Millisecond)
			}
		}
		next()
		waits()
		fake.Step(test.wait - 1)
		if !fake.HasWaiters() {
			t.Errorf("%s: it looks again before %s", test.reason, test.wait)
		}
		fake.Step(1)
		next()
		cancel()
		<-ended
	}
}
