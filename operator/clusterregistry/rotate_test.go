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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// rotating returns the scope of a complete registry that is ready, with spec.tls.rotation in
// YAML, and with the generations of the CAs of servers and clients that are in use.
func rotating(t *testing.T, mode, asked string, serving, clients generation.InUse) *scope {
	t.Helper()
	s := look(t, "{spec: {version: v0.1.0, mode: "+mode+", etcd: {replicas: 3}, tls: {rotation: "+asked+"}}, status: {version: v0.1.0, history: [{version: v0.1.0, state: Completed, startTime: null}]}}")
	s.Authorities.Serving.InUse, s.Authorities.Clients.InUse = serving, clients
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	return s
}

var (
	one, two   = generation.InUse{Signing: 1}, generation.InUse{Signing: 2}
	next, both = generation.InUse{Signing: 1, Also: 2}, generation.InUse{Signing: 2, Also: 1}
)

// TestDropPending drops no CA of clients that a person has not named, or a later one than it: one
// whose key got lost before it signed is accepted, too.
func TestDropPending(t *testing.T) {
	later := time.Now().Add(time.Hour)
	for _, test := range []struct {
		drop   string
		begins bool
	}{{"", false}, {", drop: {client: 1}", false}, {", drop: {client: 2}", true}} {
		s := rotating(t, "Independent", "{client: 3"+test.drop+"}", one, generation.InUse{Signing: 3, Also: 1})
		s.Authorities.Clients.Name = "fleet-client-ca"
		s.Authorities.Clients.Published = slices.Concat(trusttest.NamedCA(t, "fleet-client-ca", later).PEM, trusttest.NamedCA(t, "fleet-client-ca-2", later).PEM)
		r := reading(t, s)
		all := r.rotations(s)
		h := all[len(all)-1]
		if reason, says := s.rotationNoted(h); h.Due() != test.begins || !test.begins && (reason != "DropPending" || !strings.Contains(says, "certificates of generations 1 and 2 of the client CA are still accepted") || !strings.HasSuffix(says, "set spec.tls.rotation.drop.client to 2")) {
			t.Errorf("%q: begins %t, %s: %s", test.drop, h.Due(), reason, says)
		}
	}
	for want, numbers := range map[string][]int32{"": nil, "1": {1}, "1 and 2": {1, 2}, "1, 2 and 4": {1, 2, 4}} {
		if got := listed(numbers); got != want {
			t.Errorf("%v: %q", numbers, got)
		}
	}
}

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
		{"servers are being replaced", "Independent", "{client: 2}", one, one, func(s *scope) { s.Servers.Rolling = "servers: 1 of 2 updated" }, "", "RotationPending", "the client CA is rotated to generation 2 when this is resolved: servers: 1 of 2 updated"},
		{"etcd is not ready", "Independent", "{client: 2}", one, one, func(s *scope) {
			s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true))
		}, "", "RotationPending", "when this is resolved: EtcdReady: 2 of 3"},
		{"it was never complete", "Independent", "{client: 2}", one, one, func(s *scope) { s.Registry.Status.History = nil }, "", "RotationPending", "when this is resolved: the registry is being installed"},
		{"a defragmentation is under way", "Independent", "{client: 2}", one, one, func(s *scope) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation, Phase: "Preflight"}
			s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
			s.Members.Replacing = true // it waits
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
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the rotation of a CA is complete (the condition Progressing says what is awaited); v0.1.0 keeps running") || waits == (s.upgrade != nil) {
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
	first, second := trusttest.NamedCA(t, "fleet-serving-ca", time.Now().Add(time.Hour)).PEM, trusttest.NamedCA(t, "fleet-serving-ca-2", time.Now().Add(time.Hour)).PEM
	s.Authorities.Serving.Current, s.Authorities.Serving.Also, s.Authorities.Serving.Published = first, second, slices.Concat(first, second)
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
		for _, a := range []*trust.Authority{&s.Authorities.Serving, &s.Authorities.Clients} {
			a.Also, a.Published = []byte("also"), []byte("published")
		}
		if test.to != "" {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, To: test.to, Phase: test.phase}
		}
		if test.another {
			s.Registry.Status.Operation.Type = operatorv1alpha1.OperationUpgrade
		}
		s.withdraw()
		if (s.Authorities.Serving.Also == nil) != test.withoutS || (s.Authorities.Clients.Also == nil) != test.withoutC || (s.Authorities.Clients.Published == nil) != test.unpublished || s.Authorities.Serving.Published == nil {
			t.Errorf("%s: %+v", test.reason, s.Authorities)
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
		{"both are published", all, first.PEM, second.Leaf(), nil, nil, "", "", "all servers can be asked: 0 of 0 are ready", "until the previous CA is no longer published"},
		{"one is", first.PEM, first.PEM, first.Leaf(), nil, nil, "", "waiting until both CAs are published", "waiting for cert-manager to issue Certificate fleet-serving by the CA in Secret fleet-serving-ca-2", "no longer published"},
		{"the host cluster does not serve it", all, first.PEM, second.Leaf(), nil, nil, "APIServiceReady", "waiting until APIServiceReady is True: not yet", "0 of 0", "waiting until APIServiceReady is True: not yet"},
		{"servers show the new one", all, first.PEM, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x")}, "", "", "", "no longer published"},
		{"one shows the previous one", all, first.PEM, second.Leaf(), errors.New("unknown authority"), []client.Object{readyServer("fleet-server-x")}, "", "", "waiting until pod fleet-server-x shows a certificate of the new CA, for which its node takes up to two minutes: unknown authority", "no longer published"},
		{"one can't be asked", all, first.PEM, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x"), starting}, "", "", "waiting until all servers can be asked: 1 of 2 are ready", "no longer published"},
		{"the new one alone is published", second.PEM, nil, second.Leaf(), nil, []client.Object{readyServer("fleet-server-x")}, "", "", "", ""},
	} {
		s := rotating(t, "Aggregated", "{}", both, generation.InUse{})
		r := reading(t, s, append(test.pods, operandtest.Secret("fleet-serving", test.leaf))...)
		r.AskServer = func(context.Context, health.Server) (string, error) { return "v0.1.0", test.refuses }
		s.Authorities.Serving = trust.Authority{Source: "Secret fleet-serving-ca-2", InUse: both, Current: second.PEM, Also: test.also, Published: test.published}
		if test.notReady != "" {
			s.record(test.notReady, verdict.Waiting("R", "not yet").DegradedIf(true))
		}
		ca := newServingCA(r, s)
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
		r := reading(t, s, readyServer("fleet-server-x"), operandtest.Secret("fleet-admin", test.leaf))
		r.Handshake = func(context.Context, handshake.Server) (handshake.Shown, error) { return test.shows, test.err }
		s.Authorities.Clients = trust.Authority{Source: "Secret fleet-client-ca-2", InUse: both, Current: second.PEM, Also: first.PEM}
		if test.notReady {
			s.record(operatorv1alpha1.ConditionCertificatesReady, verdict.Waiting("NotOwned", "not ours").DegradedIf(true))
		}
		if test.withdrawing {
			s.Authorities.Clients.Also = nil
		}
		s.Before.ClientCABundle = test.status
		ca := newClientCA(r, s)
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
	if err := newClientCA(r, s).Record(t.Context(), two); err != nil {
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

// TestRotatePutOff has an upgrade come before a rotation whose new CA cert-manager does not
// issue, of which nothing is published, and not before one of which something is.
func TestRotatePutOff(t *testing.T) {
	ca := trusttest.NamedCA(t, "fleet-client-ca", time.Now().Add(time.Hour)).PEM
	for _, test := range []struct {
		reason string
		change func(*scope)
		putOff bool
	}{
		{"nothing is published", func(*scope) {}, true},
		{"the new CA is issued, and so published", func(s *scope) { s.Authorities.Clients.Also = ca }, false},
		{"it was published, and is lost", func(s *scope) { s.Authorities.Clients.Lost = true }, false},
		{"the new CA was issued, and its Secret is gone", func(s *scope) {
			s.Registry.Status.Operation.Phase, s.Before.Operation.Phase = operatorv1alpha1.PhaseTrust, operatorv1alpha1.PhaseTrust
		}, false},
		{"no upgrade is asked for", func(s *scope) { s.Registry.Spec.Version = "v0.1.0" }, false},
		{"nothing may be changed", func(s *scope) { s.Freeze("spec.paused is false") }, false},
	} {
		s := rotating(t, "Independent", "{client: 2}", one, next)
		s.Registry.Spec.Version = "v0.2.0"
		s.Authorities.Clients.Current = ca
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "client 1", To: "client 2", Phase: operatorv1alpha1.PhaseIssuance}
		s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
		test.change(s)
		r := reading(t, s, s.Registry.DeepCopy())
		s.record(pass.Planned, s.plan(released))
		v := r.operate(t.Context(), s)
		lost := s.Authorities.Clients.Lost
		if ended := s.Registry.Status.Operation == nil; ended != (test.putOff || lost) || v.Err != nil {
			t.Errorf("%s: %+v, %+v", test.reason, v, s.Registry.Status.Operation)
		}
		if got, want := s.Authorities.Copy().Clients, map[bool]string{true: "1"}[test.putOff]; got != want {
			t.Errorf("%s: recorded is %q, want %q", test.reason, got, want)
		}
		if !test.putOff {
			continue
		}
		if v := s.plan(released); s.upgrade == nil {
			t.Errorf("%s: the upgrade does not begin: %+v", test.reason, v)
		}
	}
	s := rotating(t, "Independent", "{client: 2}", one, next)
	s.record(operatorv1alpha1.ConditionCertificatesReady, verdict.Waiting("CertificateNotReady", "Certificate fleet-client-ca-2 is not issued yet: no one is there"))
	if err := newClientCA(reading(t, s), s).Issued(t.Context()); err == nil || err.Error() != "waiting for cert-manager to issue Certificate fleet-client-ca-2, the new CA (CertificatesReady: Certificate fleet-client-ca-2 is not issued yet: no one is there)" {
		t.Errorf("what is waited for: %v", err)
	}
}

// TestAbandoned takes a next CA back that was never issued and that no rotation makes, so that
// what waits for it does not: the status may be lost, or the rotation have given way.
func TestAbandoned(t *testing.T) {
	ca := trusttest.NamedCA(t, "fleet-client-ca-2", time.Now().Add(time.Hour)).PEM
	for _, test := range []struct {
		reason, rotated string
		issued          []byte
		change          func(*scope)
		inUse           generation.InUse
		recorded        string
	}{
		{"no operation", "", nil, nil, one, "1"},
		{"another CA is rotated", "etcd 2", nil, nil, one, "1"},
		{"it is being made", "client 2", nil, nil, next, "1,2"},
		{"it is issued", "", ca, nil, next, "1,2"},
		{"it was given to people", "", nil, func(s *scope) { s.Registry.Status.ClientCABundle = ca }, next, "1,2"},
		{"nothing may be changed", "", nil, func(s *scope) { s.Freeze("spec.paused is false") }, one, "1,2"},
	} {
		s := rotating(t, "Independent", "{client: 2}", one, one)
		labels := operandtest.Secret("", nil).Labels
		objects := []client.Object{s.Registry.DeepCopy(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations", Labels: labels}, Data: map[string]string{"client": "1,2"}}}
		if test.issued != nil {
			objects = append(objects, operandtest.Secret("fleet-client-ca-2", test.issued))
		}
		r := reading(t, s, objects...)
		s.Identity = identity.New(s.Objects)
		if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "existing", Replicas: 3, Generations: next, ClientCA: "1,2", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
			t.Fatal(err)
		}
		if test.rotated != "" {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, To: test.rotated, Phase: operatorv1alpha1.PhaseIssuance}
		}
		if test.change != nil {
			test.change(s)
		}
		if err := s.readAuthorities(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Authorities.Clients.InUse != test.inUse {
			t.Errorf("%s: rendered is %s", test.reason, s.Authorities.Clients.InUse)
		}
		if err := r.takeBack(t.Context(), s); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		stored, record := identity.Read(t.Context(), s.Objects).Record, &corev1.ConfigMap{}
		if err := s.Live.Get(t.Context(), s.Key("-ca-generations"), record); err != nil || record.Data["client"] != test.recorded || stored.ClientCA != test.recorded {
			t.Errorf("%s: recorded is %v, %s", test.reason, record.Data, stored.ClientCA)
		}
		if back := stored.Generations == one; back != (test.rotated != "etcd 2" && !s.ReadOnly()) {
			t.Errorf("%s: recorded of etcd is %s", test.reason, stored.Generations)
		}
	}
}

// TestTakenBackLast has a step back be taken by neither of the record and its copy as long as it
// is not by both: a record that says otherwise from one moment to the next is no record.
func TestTakenBackLast(t *testing.T) {
	for _, fails := range []string{"fleet-ca-generations", "fleet-etcd-identity"} {
		s := rotating(t, "Independent", "{client: 2}", one, one)
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations", Labels: operandtest.Secret("", nil).Labels}, Data: map[string]string{"client": "1,2"}}
		r := reading(t, s, s.Registry.DeepCopy(), record)
		s.Identity = identity.New(s.Objects)
		if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "existing", Replicas: 3, ClientCA: "1,2", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
			t.Fatal(err)
		}
		if err := s.readAuthorities(t.Context()); err != nil {
			t.Fatal(err)
		}
		base := r.Client
		broken := interceptor.NewClient(base.(client.WithWatch), interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if named, is := object.(interface{ GetName() string }); is && named.GetName() == fails {
				return errors.New("killed")
			}
			return c.Apply(ctx, object, options...)
		}})
		s.Applier = apply.New(broken, broken)
		if err := r.takeBack(t.Context(), s); err == nil {
			t.Errorf("%s is written", fails)
		}
		got := &corev1.ConfigMap{}
		if err := base.Get(t.Context(), client.ObjectKeyFromObject(record), got); err != nil || got.Data["client"] != "1,2" {
			t.Errorf("%s can't be written: the record has %v, %v", fails, got.Data, err)
		}
	}
}

// TestRotateLost says that the CA is lost that was published and is to sign next, lets no other
// key take its place, and has yet another generation made when that is asked for.
func TestRotateLost(t *testing.T) {
	for _, test := range []struct {
		reason, asked, phase string
		ends, begins         bool
		noted, says          string
	}{
		{"while it is rotated", "{serving: 2, drop: {serving: 1}}", "Trust", true, false, "RotationPending", "the key of generation 2 of the serving CA, which was published and is to sign next, is lost: Secret fleet-serving-ca-2 was deleted or replaced, and no other key takes its place; generation 1 keeps signing. Restore that Secret from a backup; or set spec.tls.rotation.serving to 3, by which another CA is made, remove spec.tls.rotation.drop.serving, and give clients the kubeconfig in Secret fleet-kubeconfig, or status.endpoint.caBundle, again when the rotation has stopped (DropPending)"},
		{"while it waits to be dropped", "{serving: 2}", "", false, false, "RotationPending", "is lost"},
		{"another one is asked for", "{serving: 3}", "", false, true, "", ""},
		{"another one is asked for while it is rotated", "{serving: 3}", "Trust", true, false, "", ""},
	} {
		s := rotating(t, "Independent", test.asked, next, one)
		s.Authorities.Serving.Lost = true
		if test.phase != "" {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "serving 1", To: "serving 2", Phase: operatorv1alpha1.OperationPhase(test.phase)}
			s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
		}
		r := reading(t, s, s.Registry.DeepCopy())
		r.proceed(t.Context(), s)
		o := s.Registry.Status.Operation
		if (o != nil) != test.begins || o != nil && o.To != "serving 3" || test.ends && o != nil {
			t.Errorf("%s: %+v", test.reason, o)
		}
		if c := s.condition(operatorv1alpha1.ConditionCertificatesReady, ""); test.noted != "" && (c.Reason != test.noted || !strings.Contains(c.Message, test.says)) {
			t.Errorf("%s: %+v", test.reason, c)
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
	r := reading(t, s, s.Registry.DeepCopy(), record, pod, operandtest.Secret("fleet-admin", second.Leaf()), operandtest.Secret("fleet-controller", second.Leaf()), operandtest.Secret("fleet-client-ca-2", second.PEM))
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
		if err := s.readAuthorities(t.Context()); err != nil {
			t.Fatal(err)
		}
		pod := pod.DeepCopy()
		pod.CreationTimestamp, pod.ResourceVersion = metav1.NewTime(seen.Add(test.created)), ""
		renewed := operandtest.Secret("fleet-controller", second.Leaf())
		for _, object := range []client.Object{pod, renewed} {
			if err := r.Client.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		err := newClientCA(r, s).Shown(t.Context())
		if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestWithdrawNamed takes the CAs of clients that are named in drop out of what is accepted,
// and no others, such as one of the generation that signs whose Secret was made again.
func TestWithdrawNamed(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, replaced, second := trusttest.NamedCA(t, "fleet-client-ca", later), trusttest.NamedCA(t, "fleet-client-ca-2", later), trusttest.NamedCA(t, "fleet-client-ca-2", later)
	s := rotating(t, "Independent", "{}", one, both)
	s.Authorities.Clients = trust.Authority{Name: "fleet-client-ca", InUse: both, Current: second.PEM, Also: first.PEM, Published: slices.Concat(first.PEM, replaced.PEM, second.PEM)}
	s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, To: "client 2", Phase: operatorv1alpha1.PhaseWithdrawal}
	s.withdraw()
	if got, want := string(s.Authorities.Clients.Bundle()), string(slices.Concat(second.PEM, replaced.PEM)); got != want {
		t.Errorf("accepted are\n%s", got)
	}
	r := reading(t, s, readyServer("fleet-server-x"))
	s.Before.ClientCABundle = s.Authorities.Clients.Bundle()
	r.Handshake = func(context.Context, handshake.Server) (handshake.Shown, error) {
		return handshake.Shown{Accepts: [][]byte{trust.Parse(second.PEM)[0].RawSubject}}, nil
	}
	if err := newClientCA(r, s).Withdrawn(t.Context()); err != nil {
		t.Errorf("it is not withdrawn: %v", err)
	}
}

// TestGenerationsCopied keeps a copy of which CAs are in use beside etcd's identity, by which a
// dropped CA stays dropped when the record gets lost.
func TestGenerationsCopied(t *testing.T) {
	s := rotating(t, "Independent", "{client: 2, drop: {client: 1}}", one, both)
	r := reading(t, s, s.Registry.DeepCopy())
	s.Identity = identity.New(s.Objects)
	if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "existing", Replicas: 3, Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
		t.Fatal(err)
	}
	if err := newClientCA(r, s).Record(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if err := s.copyGenerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := identity.Read(t.Context(), s.Objects)
	if stored.Err != nil || stored.Record.ClientCA != "2" || stored.Record.ServingCA != "" || stored.Record.ClusterID != "c" {
		t.Fatalf("%+v, %v", stored.Record, stored.Err)
	}
	lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations"}}
	if err := r.Client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	s.Identity = stored
	if err := s.readAuthorities(t.Context()); err != nil || s.Authorities.Clients.InUse != two {
		t.Errorf("%s is in use, %v", s.Authorities.Clients.InUse, err)
	}
}
