package rotation

import (
	"cmp"
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
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// known is what is known of a registry, and how its servers are asked.
type known struct {
	*passtest.Known
	access servers.Access
}

// rotating returns a complete registry that is ready, with spec.tls.rotation in YAML, and with
// the generations of the CAs of servers and clients that are in use.
func rotating(t *testing.T, mode, asked string, serving, clients generation.InUse) *known {
	t.Helper()
	s := &known{Known: passtest.New(t, "{spec: {version: v0.1.0, mode: "+mode+", etcd: {replicas: 3}, tls: {rotation: "+asked+"}}, status: {version: v0.1.0"+operandtest.Complete+"}}")}
	s.Authorities.Serving.InUse, s.Authorities.Clients.InUse = serving, clients
	s.Ready()
	return s
}

// in has the registry be in a host cluster with the given objects.
func (s *known) in(t *testing.T, objects ...client.Object) {
	t.Helper()
	s.HostCluster = operandtest.Host(t, objects...)
}

// drive returns what is done about the CAs, by what is known now.
func (s *known) drive() Drive {
	s.access.Objects = s.Objects
	return Drive{Pass: s.Pass, Access: s.access}
}

// run has the loop of operations come to the rotation.
func (s *known) run(t *testing.T) verdict.Verdict {
	t.Helper()
	return operation.Run{Pass: s.Pass}.All(t.Context(), []operation.Operation{s.drive().Operation()})
}

// read reads the CAs as the next reconcile does.
func (s *known) read(t *testing.T) (err error) {
	t.Helper()
	s.Authorities, err = Read(t.Context(), s.Pass)
	return err
}

// says returns the reason that counts of what a person should know, and all of it.
func (s *known) says() (reason, message string) {
	for _, note := range s.drive().Notes() {
		if note.Condition != operatorv1alpha1.ConditionCertificatesReady {
			return note.Condition, "of another condition"
		}
		reason, message = cmp.Or(reason, note.Reason), message+note.Message+"; "
	}
	return reason, message
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
		s.in(t)
		all := s.drive().all()
		h := all[len(all)-1]
		if reason, says := s.drive().noted(h); h.Due() != test.begins || !test.begins && (reason != "DropPending" || !strings.Contains(says, "certificates of generations 1 and 2 of the client CA are still accepted") || !strings.HasSuffix(says, "set spec.tls.rotation.drop.client to 2")) {
			t.Errorf("%q: begins %t, %s: %s", test.drop, h.Due(), reason, says)
		}
	}
	for want, numbers := range map[string][]int32{"": nil, "1": {1}, "1 and 2": {1, 2}, "1, 2 and 4": {1, 2, 4}} {
		if got := listed(numbers); got != want {
			t.Errorf("%v: %q", numbers, got)
		}
	}
}

// feeds turns the feed on.
func feeds(s *known) {
	s.Registry.Spec.Controllers = &operatorv1alpha1.Controllers{Feed: &operatorv1alpha1.Feed{}}
}

// TestRotateBegins is about which rotation begins, and what is said of one that does not.
func TestRotateBegins(t *testing.T) {
	for _, test := range []struct {
		reason, mode, asked string
		serving, clients    generation.InUse
		change              func(*known)
		begins, noted, says string
	}{
		{"nothing is asked for", "Independent", "{}", one, one, nil, "", "", ""},
		{"it is as it is", "Independent", "{serving: 2, client: 2, drop: {client: 1}}", two, two, nil, "", "", ""},
		{"servers first", "Independent", "{serving: 2, client: 2}", one, one, nil, "serving 2", "", ""},
		{"then clients", "Independent", "{serving: 2, client: 2}", next, one, nil, "client 2", "", ""},
		{"aggregated", "Aggregated", "{serving: 3}", one, generation.InUse{}, nil, "serving 3", "", ""},
		{"aggregated, in the middle, and the status is lost", "Aggregated", "{serving: 2}", both, generation.InUse{}, nil, "serving 2", "", ""},
		{"clients of independent servers need the first", "Independent", "{serving: 2}", next, one, nil, "", "DropPending",
			"generations 1 and 2 of the serving CA are published, and the servers show a certificate of the first: give clients the kubeconfig in Secret fleet-kubeconfig, or status.endpoint.caBundle, again, and then set spec.tls.rotation.drop.serving to 1"},
		{"and no longer do", "Independent", "{serving: 2, drop: {serving: 1}}", next, one, nil, "serving 2", "", ""},
		{"programs have copies of the first, of the feed", "Aggregated", "{serving: 2}", next, generation.InUse{}, feeds, "", "DropPending",
			"generations 1 and 2 of the serving CA are published, and the servers show a certificate of the first: give programs that request the feed the CAs in ConfigMap fleet-trust again, and then set spec.tls.rotation.drop.serving to 1"},
		{"and have the second", "Aggregated", "{serving: 2, drop: {serving: 1}}", next, generation.InUse{}, feeds, "serving 2", "", ""},
		{"and the second signs", "Aggregated", "{serving: 2}", both, generation.InUse{}, feeds, "serving 2", "", ""},
		{"users have certificates of the first", "Independent", "{client: 2}", one, both, nil, "", "DropPending",
			"certificates of generation 1 of the client CA are still accepted: issue users' certificates again, by Issuer fleet-client-ca-2, and then set spec.tls.rotation.drop.client to 1"},
		{"and another one is asked for", "Independent", "{client: 3}", one, both, nil, "", "DropPending", "set spec.tls.rotation.drop.client to 1; generation 3 is made after that"},
		{"the stolen one is dropped at once", "Independent", "{client: 2, drop: {client: 1}}", one, both, nil, "client 2", "", ""},
		{"lowered past the schema", "Independent", "{client: 1}", one, two, nil, "", "RotationPending", "spec.tls.rotation.client is 1, and generation 2 of that CA signs: no key is used again; set it to 2"},
		{"the servers' CA is another's", "Independent", "{serving: 2}", one, one, func(s *known) {
			s.Registry.Spec.TLS.IssuerRef = &operatorv1alpha1.IssuerReference{Name: "corporate"}
		}, "", "", ""},
		{"it is paused", "Independent", "{client: 2}", one, one, func(s *known) { s.Freeze("spec.paused is false") }, "", "RotationPending", "the client CA is rotated to generation 2 when spec.paused is false"},
		{"servers are being replaced", "Independent", "{client: 2}", one, one, func(s *known) { s.Servers.Rolling = "servers: 1 of 2 updated" }, "", "RotationPending", "the client CA is rotated to generation 2 when this is resolved: servers: 1 of 2 updated"},
		{"etcd is not ready", "Independent", "{client: 2}", one, one, func(s *known) {
			s.Verdicts[operatorv1alpha1.ConditionEtcdReady] = verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true)
		}, "", "RotationPending", "when this is resolved: EtcdReady: 2 of 3"},
		{"it was never complete", "Independent", "{client: 2}", one, one, func(s *known) { s.Registry.Status.History = nil }, "", "RotationPending", "when this is resolved: the registry is being installed"},
		{"a defragmentation is under way", "Independent", "{client: 2}", one, one, func(s *known) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation, Phase: "Preflight"}
			s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
			s.Members.Replacing = true // it waits
		}, "", "RotationPending", "the client CA is rotated to generation 2 when the defragmentation of etcd is complete"},
	} {
		s := rotating(t, test.mode, test.asked, test.serving, test.clients)
		if test.change != nil {
			test.change(s)
		}
		s.in(t)
		v := s.run(t)
		begun := s.drive().rotated() != ""
		if o := s.Registry.Status.Operation; begun != (test.begins != "") || begun && (o.To != test.begins || o.Phase != operatorv1alpha1.PhasePreflight || v.Complete()) {
			t.Errorf("%s: %+v, %+v", test.reason, o, v)
		}
		if reason, message := s.says(); !begun && (reason != test.noted || !strings.Contains(message, test.says)) {
			t.Errorf("%s: %s: %s", test.reason, reason, message)
		}
	}
}

// TestRotateEnds has an operation whose CA can't be rotated any more end, and one that is
// read-only stand still.
func TestRotateEnds(t *testing.T) {
	begun := func() *known {
		s := rotating(t, "Independent", "{serving: 2}", next, one)
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "serving 1", To: "serving 2", Phase: "Trust"}
		s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
		return s
	}
	s := begun()
	s.Registry.Spec.TLS.IssuerRef = &operatorv1alpha1.IssuerReference{Name: "corporate"}
	if v := s.run(t); !v.Complete() || v.After == 0 || s.Registry.Status.Operation != nil {
		t.Errorf("another issuer: %+v, %+v", v, s.Registry.Status.Operation)
	}
	s = begun()
	s.Freeze("spec.paused is false")
	if v := s.run(t); v.Complete() || !strings.Contains(v.Message, "nothing is changed now: it continues when spec.paused is false") {
		t.Errorf("paused: %+v", v)
	}
	s = begun()
	first, second := trusttest.NamedCA(t, "fleet-serving-ca", time.Now().Add(time.Hour)).PEM, trusttest.NamedCA(t, "fleet-serving-ca-2", time.Now().Add(time.Hour)).PEM
	s.Authorities.Serving.Current, s.Authorities.Serving.Also, s.Authorities.Serving.Published = first, second, slices.Concat(first, second)
	s.in(t)
	if v := s.run(t); !v.Complete() || s.Registry.Status.Operation != nil {
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
		s.drive().withdraw()
		if (s.Authorities.Serving.Also == nil) != test.withoutS || (s.Authorities.Clients.Also == nil) != test.withoutC || (s.Authorities.Clients.Published == nil) != test.unpublished || s.Authorities.Serving.Published == nil {
			t.Errorf("%s: %+v", test.reason, s.Authorities)
		}
	}
}

// TestAbandoned takes a next CA back that was never issued and that no rotation makes, so that
// what waits for it does not: the status may be lost, or the rotation have given way.
func TestAbandoned(t *testing.T) {
	ca := trusttest.NamedCA(t, "fleet-client-ca-2", time.Now().Add(time.Hour)).PEM
	for _, test := range []struct {
		reason, rotated string
		issued          []byte
		change          func(*known)
		inUse           generation.InUse
		recorded        string
	}{
		{"no operation", "", nil, nil, one, "1"},
		{"another CA is rotated", "etcd 2", nil, nil, one, "1"},
		{"it is being made", "client 2", nil, nil, next, "1,2"},
		{"it is issued", "", ca, nil, next, "1,2"},
		{"it was given to people", "", nil, func(s *known) { s.Registry.Status.ClientCABundle = ca }, next, "1,2"},
		{"nothing may be changed", "", nil, func(s *known) { s.Freeze("spec.paused is false") }, one, "1,2"},
	} {
		s := rotating(t, "Independent", "{client: 2}", one, one)
		labels := operandtest.Secret("", nil).Labels
		objects := []client.Object{s.Registry.DeepCopy(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations", Labels: labels}, Data: map[string]string{"client": "1,2"}}}
		if test.issued != nil {
			objects = append(objects, operandtest.Secret("fleet-client-ca-2", test.issued))
		}
		s.in(t, objects...)
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
		if err := s.read(t); err != nil {
			t.Fatal(err)
		}
		if s.Authorities.Clients.InUse != test.inUse {
			t.Errorf("%s: rendered is %s", test.reason, s.Authorities.Clients.InUse)
		}
		if err := s.drive().TakeBack(t.Context()); err != nil {
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
		s.in(t, s.Registry.DeepCopy(), record)
		s.Identity = identity.New(s.Objects)
		if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "existing", Replicas: 3, ClientCA: "1,2", Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
			t.Fatal(err)
		}
		if err := s.read(t); err != nil {
			t.Fatal(err)
		}
		base := s.Client
		broken := interceptor.NewClient(base.(client.WithWatch), interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if named, is := object.(interface{ GetName() string }); is && named.GetName() == fails {
				return errors.New("killed")
			}
			return c.Apply(ctx, object, options...)
		}})
		s.Applier = apply.New(broken, broken)
		if err := s.drive().TakeBack(t.Context()); err == nil {
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
		s.in(t, s.Registry.DeepCopy())
		s.run(t)
		o := s.Registry.Status.Operation
		if (o != nil) != test.begins || o != nil && o.To != "serving 3" || test.ends && o != nil {
			t.Errorf("%s: %+v", test.reason, o)
		}
		if reason, message := s.says(); test.noted != "" && (reason != test.noted || !strings.Contains(message, test.says)) {
			t.Errorf("%s: %s: %s", test.reason, reason, message)
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
	s.drive().withdraw()
	if got, want := string(s.Authorities.Clients.Bundle()), string(slices.Concat(second.PEM, replaced.PEM)); got != want {
		t.Errorf("accepted are\n%s", got)
	}
	s.in(t, readyServer("fleet-server-x"))
	s.Before.ClientCABundle = s.Authorities.Clients.Bundle()
	s.access.Handshake = func(context.Context, handshake.Server) (handshake.Shown, error) {
		return handshake.Shown{Accepts: [][]byte{trust.Parse(second.PEM)[0].RawSubject}}, nil
	}
	if err := s.drive().clientCA().Withdrawn(t.Context()); err != nil {
		t.Errorf("it is not withdrawn: %v", err)
	}
}

// TestGenerationsCopied keeps a copy of which CAs are in use beside etcd's identity, by which a
// dropped CA stays dropped when the record gets lost.
func TestGenerationsCopied(t *testing.T) {
	s := rotating(t, "Independent", "{client: 2, drop: {client: 1}}", one, both)
	s.in(t, s.Registry.DeepCopy())
	s.Identity = identity.New(s.Objects)
	if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "existing", Replicas: 3, Identity: etcd.Identity{ClusterID: "c"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.drive().clientCA().Record(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if err := s.drive().KeepCopy(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := identity.Read(t.Context(), s.Objects)
	if stored.Err != nil || stored.Record.ClientCA != "2" || stored.Record.ServingCA != "" || stored.Record.ClusterID != "c" {
		t.Fatalf("%+v, %v", stored.Record, stored.Err)
	}
	lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations"}}
	if err := s.Client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	s.Identity = stored
	if err := s.read(t); err != nil || s.Authorities.Clients.InUse != two {
		t.Errorf("%s is in use, %v", s.Authorities.Clients.InUse, err)
	}
}

// TestRotatePutOff has an upgrade come before a rotation whose new CA cert-manager does not
// issue, of which nothing is published, and not before one of which something is.
func TestRotatePutOff(t *testing.T) {
	ca := trusttest.NamedCA(t, "fleet-client-ca", time.Now().Add(time.Hour)).PEM
	waits := verdict.Waiting(operatorv1alpha1.ReasonOperationInProgress, "the upgrade starts when that is complete").DegradedIf(true)
	for _, test := range []struct {
		reason  string
		planned verdict.Verdict
		change  func(*known)
		putOff  bool
	}{
		{"nothing is published", waits, func(*known) {}, true},
		{"the new CA is issued, and so published", waits, func(s *known) { s.Authorities.Clients.Also = ca }, false},
		{"it was published, and is lost", waits, func(s *known) { s.Authorities.Clients.Lost = true }, false},
		{"the new CA was issued, and its Secret is gone", waits, func(s *known) {
			s.Registry.Status.Operation.Phase, s.Before.Operation.Phase = operatorv1alpha1.PhaseTrust, operatorv1alpha1.PhaseTrust
		}, false},
		{"no upgrade is asked for", verdict.Verdict{}, func(*known) {}, false},
		{"nothing may be changed", waits, func(s *known) { s.Freeze("spec.paused is false") }, false},
	} {
		s := rotating(t, "Independent", "{client: 2}", one, next)
		s.Authorities.Clients.Current = ca
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "client 1", To: "client 2", Phase: operatorv1alpha1.PhaseIssuance}
		s.Before.Operation = s.Registry.Status.Operation.DeepCopy()
		test.change(s)
		s.in(t, s.Registry.DeepCopy())
		s.Verdicts[pass.Planned] = test.planned
		v := s.run(t)
		lost := s.Authorities.Clients.Lost
		if ended := s.Registry.Status.Operation == nil; ended != (test.putOff || lost) || v.Err != nil {
			t.Errorf("%s: %+v, %+v", test.reason, v, s.Registry.Status.Operation)
		}
		if got, want := s.Authorities.Copy().Clients, map[bool]string{true: "1"}[test.putOff]; got != want {
			t.Errorf("%s: recorded is %q, want %q", test.reason, got, want)
		}
	}
	s := rotating(t, "Independent", "{client: 2}", one, next)
	s.Verdicts[operatorv1alpha1.ConditionCertificatesReady] = verdict.Waiting("CertificateNotReady", "Certificate fleet-client-ca-2 is not issued yet: no one is there")
	if err := s.drive().clientCA().Issued(t.Context()); err == nil || err.Error() != "waiting for cert-manager to issue Certificate fleet-client-ca-2, the new CA (CertificatesReady: Certificate fleet-client-ca-2 is not issued yet: no one is there)" {
		t.Errorf("what is waited for: %v", err)
	}
}

// TestRetire has the Secret of a CA that is no longer in use be known before it is forgotten, so
// that it goes.
func TestRetire(t *testing.T) {
	s := rotating(t, "Independent", "{}", one, both)
	certificate := operatorv1alpha1.ObjectReference{Group: "cert-manager.io", Kind: "Certificate", Namespace: "team", Name: "fleet-client-ca"}
	secret := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-client-ca"}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{certificate}
	s.Before.Inventory = s.Registry.Status.Inventory
	s.in(t, s.Registry.DeepCopy())
	if err := s.drive().clientCA().Record(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Registry.Status.Inventory, secret) {
		t.Errorf("the inventory has %v", s.Registry.Status.Inventory)
	}
}
