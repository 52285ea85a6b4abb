package clusterregistry

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
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// rotating returns the scope of a complete registry that is ready, with spec.tls.rotation in
// YAML, and with the generations of the CAs of servers and clients that are in use.
func rotating(t *testing.T, mode, asked string, serving, clients generation.InUse) *scope {
	t.Helper()
	s := look(t, "{spec: {version: v0.1.0, mode: "+mode+", etcd: {replicas: 3}, tls: {rotation: "+asked+"}}, status: {version: v0.1.0, history: [{version: v0.1.0, state: Completed, startTime: null}]}}")
	s.authorities.Serving.InUse, s.authorities.Clients.InUse = serving, clients
	for _, kind := range parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	return s
}

var (
	one, two   = generation.InUse{Signing: 1}, generation.InUse{Signing: 2}
	next, both = generation.InUse{Signing: 1, Also: 2}, generation.InUse{Signing: 2, Also: 1}
)

// TestRotateBegins is about which rotation begins, and what is said of one that does not.
func TestRotateBegins(t *testing.T) {
	for _, test := range []struct {
		reason, mode, asked string
		serving, clients    generation.InUse
		change              func(*scope)
		begins, noted, says string
	}{
		{"nothing is asked for", "Independent", "{}", one, one, nil, "", "Ready", ""},
		{"it is as it is", "Independent", "{serving: 2, client: 2, drop: {client: 1}}", two, two, nil, "", "Ready", ""},
		{"servers first", "Independent", "{serving: 2, client: 2}", one, one, nil, "serving 2", "", ""},
		{"then clients", "Independent", "{serving: 2, client: 2}", next, one, nil, "client 2", "", ""},
		{"aggregated", "Aggregated", "{serving: 3}", one, generation.InUse{}, nil, "serving 3", "", ""},
		{"aggregated, in the middle, and the status is lost", "Aggregated", "{serving: 2}", both, generation.InUse{}, nil, "serving 2", "", ""},
		{"clients of independent servers need the first", "Independent", "{serving: 2}", next, one, nil, "", "DropPending",
			"generations 1 and 2 of the serving CA are published, and the servers show a certificate of the first: give clients the kubeconfig in Secret fleet-kubeconfig, or status.endpoint.caBundle, again, and then set spec.tls.rotation.drop.serving to 1"},
		{"and no longer do", "Independent", "{serving: 2, drop: {serving: 1}}", next, one, nil, "serving 2", "", ""},
		{"users have certificates of the first", "Independent", "{client: 2}", one, both, nil, "", "DropPending",
			"certificates of generation 1 of the client CA are still accepted: issue users' certificates again, by Issuer fleet-client-ca-2, and then set spec.tls.rotation.drop.client to 1"},
		{"and another one is asked for", "Independent", "{client: 3}", one, both, nil, "", "DropPending", "set spec.tls.rotation.drop.client to 1; generation 3 is made after that"},
		{"the stolen one is dropped at once", "Independent", "{client: 2, drop: {client: 1}}", one, both, nil, "client 2", "", ""},
		{"lowered past the schema", "Independent", "{client: 1}", one, two, nil, "", "RotationPending", "spec.tls.rotation.client is 1, and generation 2 of that CA signs: no key is used again; set it to 2"},
		{"the servers' CA is another's", "Independent", "{serving: 2}", one, one, func(s *scope) {
			s.Registry.Spec.TLS.IssuerRef = &operatorv1alpha1.IssuerReference{Name: "corporate"}
		}, "", "Ready", ""},
		{"it is paused", "Independent", "{client: 2}", one, one, func(s *scope) { s.Freeze("spec.paused is false") }, "", "RotationPending", "the client CA is rotated to generation 2 when spec.paused is false"},
		{"servers are being replaced", "Independent", "{client: 2}", one, one, func(s *scope) { s.servers.Rolling = "servers: 1 of 2 updated" }, "", "RotationPending", "the client CA is rotated to generation 2 when this is resolved: servers: 1 of 2 updated"},
		{"etcd is not ready", "Independent", "{client: 2}", one, one, func(s *scope) {
			s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true))
		}, "", "RotationPending", "when this is resolved: EtcdReady: 2 of 3"},
		{"it was never complete", "Independent", "{client: 2}", one, one, func(s *scope) { s.Registry.Status.History = nil }, "", "RotationPending", "when this is resolved: the registry is being installed"},
		{"a defragmentation is under way", "Independent", "{client: 2}", one, one, func(s *scope) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation, Phase: "Preflight"}
			s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
			s.members.Replacing = true // it waits
		}, "", "RotationPending", "the client CA is rotated to generation 2 when the defragmentation of etcd is complete"},
	} {
		s := rotating(t, test.mode, test.asked, test.serving, test.clients)
		if test.change != nil {
			test.change(s)
		}
		r := reading(t, s)
		r.proceed(t.Context(), s)
		begun := s.rotated() != ""
		if o := s.Registry.Status.Operation; begun != (test.begins != "") || begun && (o.To != test.begins || o.Phase != operatorv1alpha1.PhasePreflight || s.operation.Complete()) {
			t.Errorf("%s: %+v, %+v", test.reason, o, s.operation)
		}
		if c := s.condition(operatorv1alpha1.ConditionCertificatesReady, ""); test.noted != "" && (c.Status != metav1.ConditionTrue || c.Reason != test.noted || !strings.Contains(c.Message, test.says)) {
			t.Errorf("%s: %+v", test.reason, c)
		}
	}
}

// TestRotateAndUpgrade has an upgrade wait for a rotation that has begun to change something,
// and come first otherwise; a rotation waits for an upgrade.
func TestRotateAndUpgrade(t *testing.T) {
	for phase, waits := range map[operatorv1alpha1.OperationPhase]bool{"Preflight": false, "Issuance": true, "Withdrawal": true} {
		s := rotating(t, "Independent", "{client: 2}", one, one)
		s.Registry.Spec.Version = "v0.2.0"
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "client 1", To: "client 2", Phase: phase}
		v := s.plan(released)
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the rotation of a CA is complete; v0.1.0 keeps running") || waits == (s.upgrade != nil) {
			t.Errorf("%s: %+v, %+v", phase, v, s.Registry.Status.Operation)
		}
		if s.upgrade != nil {
			s.noteRotations(reading(t, s).rotations(s))
			if c := s.condition(operatorv1alpha1.ConditionCertificatesReady, ""); c.Reason != "RotationPending" || !strings.Contains(c.Message, "the client CA is rotated to generation 2 when the upgrade is complete") {
				t.Errorf("in an upgrade: %+v", c)
			}
		}
	}
}

// TestRotateEnds has an operation whose CA can't be rotated any more end, and one that is
// read-only stand still.
func TestRotateEnds(t *testing.T) {
	begun := func() *scope {
		s := rotating(t, "Independent", "{serving: 2}", next, one)
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "serving 1", To: "serving 2", Phase: "Trust"}
		s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
		return s
	}
	s := begun()
	s.Registry.Spec.TLS.IssuerRef = &operatorv1alpha1.IssuerReference{Name: "corporate"}
	if v := reading(t, s).operate(t.Context(), s); !v.Complete() || v.After == 0 || s.Registry.Status.Operation != nil {
		t.Errorf("another issuer: %+v, %+v", v, s.Registry.Status.Operation)
	}
	s = begun()
	s.Freeze("spec.paused is false")
	if v := reading(t, s).operate(t.Context(), s); v.Complete() || !strings.Contains(v.Message, "nothing is changed now: it continues when spec.paused is false") {
		t.Errorf("paused: %+v", v)
	}
	s = begun()
	ca := trusttest.NewCA(t, time.Now().Add(time.Hour)).PEM
	s.authorities.Serving.Current, s.authorities.Serving.Published = ca, ca
	r := reading(t, s)
	if v := r.operate(t.Context(), s); !v.Complete() || s.Registry.Status.Operation != nil {
		t.Errorf("both are trusted: %+v, %+v", v, s.Registry.Status.Operation)
	}
}

// TestWithdraw takes the previous generation out of what is rendered in the last phase of its
// rotation, and in no other case.
func TestWithdraw(t *testing.T) {
	for _, test := range []struct {
		reason, to           string
		phase                operatorv1alpha1.OperationPhase
		serving, clients     generation.InUse
		withoutS, withoutC   bool
		unpublished, another bool
	}{
		{"no operation", "", "", both, both, false, false, false, false},
		{"clients, and it is time", "client 2", "Withdrawal", both, both, false, true, true, false},
		{"servers, and it is time", "serving 2", "Withdrawal", both, both, true, false, false, false},
		{"before that", "client 2", "Reissue", both, both, false, false, false, false},
		{"the record says that the other one does not sign yet", "client 2", "Withdrawal", both, next, false, false, false, false},
		{"the record is ahead of the status", "client 2", "Withdrawal", both, two, false, true, true, false},
		{"another operation", "client 2", "Withdrawal", both, both, false, false, false, true},
	} {
		s := rotating(t, "Independent", "{}", test.serving, test.clients)
		for _, a := range []*trust.Authority{&s.authorities.Serving, &s.authorities.Clients} {
			a.Also, a.Published = []byte("also"), []byte("published")
		}
		if test.to != "" {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, To: test.to, Phase: test.phase}
		}
		if test.another {
			s.Registry.Status.Operation.Type = operatorv1alpha1.OperationUpgrade
		}
		s.withdraw()
		if (s.authorities.Serving.Also == nil) != test.withoutS || (s.authorities.Clients.Also == nil) != test.withoutC || (s.authorities.Clients.Published == nil) != test.unpublished || s.authorities.Serving.Published == nil {
			t.Errorf("%s: %+v", test.reason, s.authorities)
		}
	}
}

// pod returns a server that is ready.
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
		{"both are published", all, first.PEM, second.Leaf(), nil, nil, "", "", "0 of 0 servers are ready", "the previous CA is still published"},
		{"one is", first.PEM, first.PEM, first.Leaf(), nil, nil, "", "published just now", "the certificate in Secret fleet-serving is not of the CA in Secret fleet-serving-ca-2 yet", "still published"},
		{"the host cluster does not serve it", all, first.PEM, second.Leaf(), nil, nil, "APIServiceReady", "APIServiceReady: not yet", "0 of 0", "APIServiceReady: not yet"},
		{"servers show the new one", all, first.PEM, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x")}, "", "", "", "still published"},
		{"one shows the previous one", all, first.PEM, second.Leaf(), errors.New("unknown authority"), []client.Object{readyServer("fleet-server-x")}, "", "", "pod fleet-server-x does not show a certificate of the new CA yet: unknown authority", "still published"},
		{"one can't be asked", all, first.PEM, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x"), starting}, "", "", "1 of 2 servers are ready to be asked", "still published"},
		{"the new one alone is published", second.PEM, nil, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x")}, "", "", "", ""},
	} {
		s := rotating(t, "Aggregated", "{}", both, generation.InUse{})
		r := reading(t, s, append(test.pods, operandtest.Secret("fleet-serving", test.leaf))...)
		r.AskServer = func(context.Context, health.Server) (string, error) { return "v0.1.0", test.refuses }
		s.authorities.Serving = trust.Authority{Source: "Secret fleet-serving-ca-2", InUse: both, Current: second.PEM, Also: test.also, Published: test.published}
		if test.notReady != "" {
			s.record(test.notReady, verdict.Waiting("R", "not yet").DegradedIf(true))
		}
		ca := servingCA{r, s}
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
	}{
		{"servers accept both", accepts(first, second), nil, second.Leaf(), nil, false, "", "", "status.clientCABundle was changed just now"},
		{"they accept the first", accepts(first), nil, first.Leaf(), nil, false, "pod fleet-server-x does not accept clients of both CAs yet", "the certificate in Secret fleet-admin is not of the CA in Secret fleet-client-ca-2 yet", "just now"},
		{"they say nothing", handshake.Shown{}, errors.New("no route"), second.Leaf(), nil, false, "no route", "", "just now"},
		{"it is withdrawn, and servers are late", accepts(first, second), nil, second.Leaf(), second.PEM, true, "", "", "pod fleet-server-x still accepts clients of the previous CA"},
		{"they followed", accepts(second), nil, second.Leaf(), second.PEM, true, "", "", ""},
		{"the status is not written yet", accepts(second), nil, second.Leaf(), slices.Concat(first.PEM, second.PEM), true, "", "", "just now"},
	} {
		s := rotating(t, "Independent", "{}", one, both)
		r := reading(t, s, readyServer("fleet-server-x"), operandtest.Secret("fleet-admin", test.leaf))
		r.Handshake = func(context.Context, handshake.Server) (handshake.Shown, error) { return test.shows, test.err }
		s.authorities.Clients = trust.Authority{Source: "Secret fleet-client-ca-2", InUse: both, Current: second.PEM, Also: first.PEM}
		if test.withdrawing {
			s.authorities.Clients.Also = nil
		}
		s.Before.ClientCABundle = test.status
		ca := clientCA{r, s}
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

// TestRetire has the Secret of a CA that is no longer in use go with the registry's objects,
// but after its Certificate.
func TestRetire(t *testing.T) {
	s := rotating(t, "Independent", "{}", one, both)
	certificate := operatorv1alpha1.ObjectReference{Group: "cert-manager.io", Kind: "Certificate", Namespace: "team", Name: "fleet-client-ca"}
	secret := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-client-ca"}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{certificate}
	s.Before.Inventory = s.Registry.Status.Inventory
	r := reading(t, s, s.Registry.DeepCopy())
	if err := (clientCA{r, s}).Record(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Registry.Status.Inventory, secret) || !slices.Contains(s.made(), secret) {
		t.Errorf("with its Certificate: %v", s.Registry.Status.Inventory)
	}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{secret}
	if slices.Contains(s.made(), secret) {
		t.Error("it stays without its Certificate")
	}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{secret, trust.GenerationsReference(s.Objects)}
	if kept := s.retainable(); len(kept) != 2 {
		t.Errorf("retained are %v", kept)
	}
}
