package rotation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// readyServer returns a server that is ready.
func readyServer(name string) *corev1.Pod {
	_, pod := operandtest.Servers(1)
	pod.Name = name
	pod.Status = corev1.PodStatus{PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}}}
	return pod
}

// TestServingCA is about what counts as trusted, shown and withdrawn of the CA of servers.
func TestServingCA(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-serving-ca", later), trusttest.NamedCA(t, "fleet-serving-ca-2", later)
	all := slices.Concat(first.PEM, second.PEM)
	starting := readyServer("fleet-server-y")
	starting.Status.Conditions = nil
	for _, test := range []struct {
		reason                    string
		published, also, leaf     []byte
		refuses                   error
		pods                      []client.Object
		notReady                  string
		trusted, shown, withdrawn string
	}{
		{"both are published", all, first.PEM, second.Leaf(), nil, nil, "", "", "all servers can be asked: 0 of 0 are ready", "until the previous CA is no longer published"},
		{"one is", first.PEM, first.PEM, first.Leaf(), nil, nil, "", "waiting until both CAs are published", "waiting for cert-manager to issue Certificate fleet-serving by the CA in Secret fleet-serving-ca-2", "no longer published"},
		{"the host cluster does not serve it", all, first.PEM, second.Leaf(), nil, nil, "APIServiceReady", "waiting until APIServiceReady is True: not yet", "0 of 0", "waiting until APIServiceReady is True: not yet"},
		{"servers show the new one", all, first.PEM, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x")}, "", "", "", "no longer published"},
		{"one shows the previous one", all, first.PEM, second.Leaf(), errors.New("unknown authority"), []client.Object{readyServer("fleet-server-x")}, "", "", "waiting until pod fleet-server-x shows a certificate of the new CA, for which its node takes up to two minutes: unknown authority", "no longer published"},
		{"one can't be asked", all, first.PEM, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x"), starting}, "", "", "waiting until all servers can be asked: 1 of 2 are ready", "no longer published"},
		{"the new one alone is published", second.PEM, nil, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x")}, "", "", "", ""},
	} {
		s := rotating(t, "Aggregated", "{}", both, generation.InUse{})
		s.in(t, append(test.pods, operandtest.Secret("fleet-serving", test.leaf))...)
		s.access.Ask = func(context.Context, health.Server) (string, error) { return "v0.1.0", test.refuses }
		s.Authorities.Serving = trust.Authority{Source: "Secret fleet-serving-ca-2", InUse: both, Current: second.PEM, Also: test.also, Published: test.published}
		if test.notReady != "" {
			s.Verdicts[test.notReady] = verdict.Waiting("R", "not yet").DegradedIf(true)
		}
		ca := s.drive().servingCA()
		for what, got := range map[string]struct {
			err  error
			want string
		}{"trusted": {ca.Trusted(t.Context()), test.trusted}, "shown": {ca.Shown(t.Context()), test.shown}, "withdrawn": {ca.Withdrawn(t.Context()), test.withdrawn}} {
			if (got.err == nil) != (got.want == "") || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %s: %v", test.reason, what, got.err)
			}
		}
	}
}

// TestServingCAOfTheFeed expects the CA of servers to be shown once the controller shows it, too, to those
// who ask its feed.
func TestServingCAOfTheFeed(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-serving-ca", later), trusttest.NamedCA(t, "fleet-serving-ca-2", later)
	for leaf, want := range map[string]string{string(first.Leaf()): "waiting for cert-manager to issue Certificate fleet-controller", string(second.Leaf()): ""} {
		s := rotating(t, "Aggregated", "{}", both, generation.InUse{})
		s.Registry.Spec.Controllers = &operatorv1alpha1.Controllers{Feed: &operatorv1alpha1.Feed{}}
		s.in(t, readyServer("fleet-server-x"), operandtest.Secret("fleet-serving", second.Leaf()), operandtest.Secret("fleet-controller", []byte(leaf)))
		s.access.Ask = func(context.Context, health.Server) (string, error) { return "v0.1.0", nil }
		s.Authorities.Serving = trust.Authority{Source: "Secret fleet-serving-ca-2", InUse: both, Current: second.PEM, Also: first.PEM, Published: slices.Concat(first.PEM, second.PEM)}
		if err := s.drive().servingCA().Shown(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestClientCA is about what counts as trusted, shown and withdrawn of the CA of clients: what
// each server says itself that it accepts.
func TestClientCA(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-client-ca", later), trusttest.NamedCA(t, "fleet-client-ca-2", later)
	accepts := func(cas ...trusttest.CA) handshake.Shown {
		var shown handshake.Shown
		for _, ca := range cas {
			shown.Accepts = append(shown.Accepts, trust.Parse(ca.PEM)[0].RawSubject)
		}
		return shown
	}
	for _, test := range []struct {
		reason                    string
		shows                     handshake.Shown
		err                       error
		leaf, status              []byte
		withdrawing               bool
		trusted, shown, withdrawn string
		notReady                  bool
	}{
		{"servers accept both", accepts(first, second), nil, second.Leaf(), nil, false, "", "", "status.clientCABundle was changed just now", false},
		{"they accept the first", accepts(first), nil, first.Leaf(), nil, false, "waiting until pod fleet-server-x accepts clients of both CAs", "waiting for cert-manager to issue Certificate fleet-admin by the CA in Secret fleet-client-ca-2", "just now", false},
		{"they say nothing", handshake.Shown{}, errors.New("no route"), second.Leaf(), nil, false, "no route", "", "just now", false},
		{"it is withdrawn, and servers are late", accepts(first, second), nil, second.Leaf(), second.PEM, true, "", "", "waiting until pod fleet-server-x no longer accepts clients of the previous CA", false},
		{"they followed", accepts(second), nil, second.Leaf(), second.PEM, true, "", "", "", false},
		{"the status is not written yet", accepts(second), nil, second.Leaf(), slices.Concat(first.PEM, second.PEM), true, "", "", "just now", false},
		{"the new one is someone else's", accepts(first, second), nil, second.Leaf(), nil, false, "waiting until CertificatesReady is True: not ours", "waiting until CertificatesReady is True: not ours", "just now", true},
	} {
		s := rotating(t, "Independent", "{}", one, both)
		s.in(t, readyServer("fleet-server-x"), operandtest.Secret("fleet-admin", test.leaf))
		s.access.Handshake = func(context.Context, handshake.Server) (handshake.Shown, error) { return test.shows, test.err }
		s.Authorities.Clients = trust.Authority{Source: "Secret fleet-client-ca-2", InUse: both, Current: second.PEM, Also: first.PEM}
		if test.notReady {
			s.Verdicts[operatorv1alpha1.ConditionCertificatesReady] = verdict.Waiting("NotOwned", "not ours").DegradedIf(true)
		}
		if test.withdrawing {
			s.Authorities.Clients.Also = nil
		}
		s.Before.ClientCABundle = test.status
		ca := s.drive().clientCA()
		for what, got := range map[string]struct {
			err  error
			want string
		}{"trusted": {ca.Trusted(t.Context()), test.trusted}, "shown": {ca.Shown(t.Context()), test.shown}, "withdrawn": {ca.Withdrawn(t.Context()), test.withdrawn}} {
			if (got.err == nil) != (got.want == "") || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %s: %v", test.reason, what, got.err)
			}
		}
	}
}

// TestControllerFollows drops no CA of clients before the controller uses a certificate of the
// new one: it is not asked, so that the time since the first such one was seen tells, and the
// age of its pods. That it is renewed more often than that changes nothing.
func TestControllerFollows(t *testing.T) {
	second := trusttest.NamedCA(t, "fleet-client-ca-2", time.Now().Add(time.Hour))
	seen := time.Now().Truncate(time.Second)
	pod := readyServer("fleet-controller-x")
	pod.Labels[operatorv1alpha1.LabelComponent] = operand.ComponentController
	waits := "waiting until pod fleet-controller-x uses the certificate of the new CA, which it does by " + seen.Add(controllerFollows).UTC().Format(time.RFC3339) + ", or once it is replaced (kubectl --namespace=team rollout restart deployment/fleet-controller)"
	s := rotating(t, "Independent", "{}", one, both)
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations", Labels: operandtest.Secret("", nil).Labels}, Data: map[string]string{"client": "2,1"}}
	s.in(t, s.Registry.DeepCopy(), record, pod, operandtest.Secret("fleet-admin", second.Leaf()), operandtest.Secret("fleet-controller", second.Leaf()), operandtest.Secret("fleet-client-ca-2", second.PEM))
	for _, test := range []struct {
		reason  string
		created time.Duration // after the certificate was seen
		now     time.Duration
		says    string
	}{
		{"it is seen", -time.Hour, 0, waits},
		{"it was replaced since", 2 * time.Minute, 3 * time.Minute, ""},
		{"it was renewed, and it has not had the time to read the first", -time.Hour, controllerFollows - time.Second, waits},
		{"it was renewed, and it has", -time.Hour, controllerFollows, ""},
		{"the clock was set back", -time.Hour, -time.Hour, "which it does by " + seen.Add(controllerFollows-time.Hour).UTC().Format(time.RFC3339)},
	} {
		s.Now = seen.Add(test.now)
		if err := s.read(t); err != nil {
			t.Fatal(err)
		}
		pod := pod.DeepCopy()
		pod.CreationTimestamp, pod.ResourceVersion = metav1.NewTime(seen.Add(test.created)), ""
		renewed := operandtest.Secret("fleet-controller", second.Leaf())
		for _, object := range []client.Object{pod, renewed} {
			if err := s.Client.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		err := s.drive().clientCA().Shown(t.Context())
		if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
