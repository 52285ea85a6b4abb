package clusterregistry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// managed is a registry with an etcd of its own, whose members and servers serve,
// and a host that answers evictions.
type managed struct {
	*Reconciler
	scope      *scope
	set        *appsv1.StatefulSet
	pods       []*corev1.Pod
	deployment *appsv1.Deployment
	state      etcd.State
	// refusal answers evictions, which are noted.
	refusal error
	evicted []string
}

// newManaged returns one whose members all wait to be replaced, when nothing was
// changed about it.
func newManaged(t *testing.T, members int, changes ...func(*managed)) *managed {
	t.Helper()
	s := look(t, fmt.Sprintf("{spec: {mode: Aggregated, version: v0.1.0, etcd: {replicas: %d}}, status: {version: v0.1.0, etcd: {clusterID: c}%s}}", members, complete))
	m := &managed{scope: s}
	m.deployment, _ = serversOf(2)
	m.set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	s.identity = &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: int32(members), Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{}}}
	for i := range members {
		name, id := fmt.Sprintf("fleet-etcd-%d", i), fmt.Sprintf("a%d", i)
		s.identity.Members[name] = id
		m.state.Members = append(m.state.Members, etcd.Member{Name: name, ID: id, ClusterID: "c", Leader: "a0", Term: 1, Version: "3.6.14"})
		m.state.List = append(m.state.List, etcd.Listed{ID: id, Name: name})
		long := metav1.NewTime(s.now.Add(-time.Hour))
		m.pods = append(m.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "1", CreationTimestamp: long, Labels: map[string]string{
				operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: componentEtcd, appsv1.ControllerRevisionHashLabelKey: "old"}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: long}}}})
	}
	s.identity.EtcdVersion = "v3.6.14"
	for _, change := range changes {
		change(m)
	}
	ca, pair := keyPair(t)
	s.trust.Etcd = ca
	objects := []client.Object{m.set, m.deployment, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: render.EtcdClientSecret(s.registry)}, Data: pair}}
	for _, pod := range m.pods {
		objects = append(objects, pod)
	}
	m.Reconciler = reading(t, objects...)
	m.Client = interceptor.NewClient(m.Client.(client.WithWatch), interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, name string, object client.Object, sub client.Object, _ ...client.SubResourceCreateOption) error {
			eviction := sub.(*policyv1.Eviction)
			if name != "eviction" || eviction.DeleteOptions.Preconditions == nil || *eviction.DeleteOptions.Preconditions.UID != "1" {
				t.Errorf("it creates %s of %s: %+v", name, object.GetName(), eviction)
			}
			if m.refusal == nil {
				m.evicted = append(m.evicted, object.GetName())
			}
			return m.refusal
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			t.Errorf("it deletes %s", object.GetName())
			return nil
		},
	})
	m.Applier, m.Events = apply.New(m.Client, m.Live), events.NewFakeRecorder(10)
	m.AskEtcd = func(context.Context, etcd.Access) etcd.State { return m.state }
	rendering(s)
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
	set.SetNamespace("team")
	set.SetName("fleet-etcd")
	s.rendered.Stages[render.StageEtcd] = []*unstructured.Unstructured{set}
	return m
}

// keyPair returns a certificate that signed itself, and a Secret's content of it.
func keyPair(t *testing.T) (ca []byte, secret map[string][]byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, certErr := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	private, keyErr := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(certErr, keyErr); err != nil {
		t.Fatal(err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return ca, map[string][]byte{corev1.TLSCertKey: ca, corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

// replaced has some members be of the newest template already.
func replaced(names ...int) func(*managed) {
	return func(m *managed) {
		for _, i := range names {
			m.pods[i].Labels[appsv1.ControllerRevisionHashLabelKey] = "new"
		}
	}
}

// TestRoll says which member is evicted in which state, and which not.
func TestRoll(t *testing.T) {
	rolling := func(m *managed) { m.deployment.Status.UpdatedReplicas = 1 }
	down := func(i int) func(*managed) {
		return func(m *managed) {
			m.state.Members[i].Err = errors.New("it is down")
			m.pods[i].Status.Conditions = nil
		}
	}
	for _, test := range []struct {
		reason  string
		members int
		changes []func(*managed)
		evicted string
		says    string // the hold does, unless it is empty: then there is none
	}{
		{"a follower is the first", 3, nil, "fleet-etcd-1", "fleet-etcd-1 is being replaced"},
		{"the only one has no budget", 1, nil, "fleet-etcd-0", "fleet-etcd-0 is being replaced"},
		{"all are as wanted", 3, []func(*managed){replaced(0, 1, 2)}, "", ""},
		{"a node is being drained, and the host refuses", 3, []func(*managed){func(m *managed) { m.refusal = apierrors.NewTooManyRequests("disruption budget", 0) }}, "", "fleet-etcd-1 is next, but its eviction is refused for now: disruption budget"},
		{"it became another pod meanwhile", 3, []func(*managed){func(m *managed) { m.refusal = apierrors.NewConflict(schema.GroupResource{}, "", errors.New("uid")) }}, "", "fleet-etcd-1 is next"},
		{"it is gone already", 3, []func(*managed){func(m *managed) { m.refusal = apierrors.NewNotFound(schema.GroupResource{}, "") }}, "", "fleet-etcd-1 is being replaced"},
		{"the right is missing", 3, []func(*managed){func(m *managed) {
			m.refusal = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("pods/eviction"))
		}}, "", "evict pod fleet-etcd-1: "},
		{"servers are being replaced", 3, []func(*managed){rolling}, "", "fleet-etcd-1 is next, once the servers are replaced"},
		{"servers are to be replaced, and nobody has looked yet", 3, []func(*managed){func(m *managed) { m.deployment.Generation = 2 }}, "", "once the servers are replaced"},
		{"a server was evicted, and the one in its place comes up", 3, []func(*managed){func(m *managed) {
			_, pod := serversOf(2)
			pod.CreationTimestamp = metav1.NewTime(m.scope.now)
			m.pods = append(m.pods, pod)
		}}, "", "once the servers are replaced"},
		{"servers are being replaced, but the member does not serve anyway", 3, []func(*managed){rolling, down(1)}, "fleet-etcd-1", "fleet-etcd-1 is being replaced"},
		{"another member is down", 3, []func(*managed){replaced(2), down(2)}, "", "2 of 3 etcd members ready"},
		{"no node fits one", 3, []func(*managed){down(2), func(m *managed) { m.pods[2].Status.Phase = corev1.PodPending }}, "fleet-etcd-2", ""},
		{"an alarm is raised", 3, []func(*managed){func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} }}, "", "NOSPACE is raised by member fleet-etcd-1"},
		{"an alarm is raised, and one is down", 3, []func(*managed){down(1), func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a0", Type: "NOSPACE"}} }}, "", "; besides, pod fleet-etcd-1"},
		{"a member was added by hand", 3, []func(*managed){func(m *managed) { m.state.List = append(m.state.List, etcd.Listed{ID: "a9"}) }}, "", "member a9 at  was added to etcd"},
		{"it is read-only", 3, []func(*managed){func(m *managed) { m.scope.readOnly = true }}, "", "nothing is changed now"},
	} {
		m := newManaged(t, test.members, test.changes...)
		v := m.members(t.Context(), m.scope)
		if test.says == "" && test.evicted == "" && !v.Complete() || test.says != "" && (v.Complete() || !strings.Contains(v.Message, test.says)) {
			t.Errorf("%s: %+v, want %q", test.reason, v, test.says)
		}
		if got := strings.Join(m.evicted, " "); got != test.evicted {
			t.Errorf("%s: evicted %q, want %q (%+v)", test.reason, got, test.evicted, v)
		}
	}
}

// TestEtcdReadyInTrouble is about an etcd whose members all serve: the registry is
// not ready, and goes on.
func TestEtcdReadyInTrouble(t *testing.T) {
	for reason, change := range map[string]func(*managed){
		operatorv1alpha1.ReasonNoSpace:           func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} },
		operatorv1alpha1.ReasonCorrupt:           func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "CORRUPT"}} },
		operatorv1alpha1.ReasonMembershipDiffers: func(m *managed) { m.state.List = append(m.state.List, etcd.Listed{ID: "a9"}) },
	} {
		m := newManaged(t, 3, replaced(0, 1, 2), change)
		if v := m.members(t.Context(), m.scope); v.Complete() || v.Reason != reason || v.State != verdict.Degraded {
			t.Errorf("%s: %+v", reason, v)
		}
	}
}

// TestJoinedWhileReadOnly is about a member that joined and serves: its record lets
// it start empty until somebody changes that, which a read-only pass only reports, and
// only when there is nothing worse.
func TestJoinedWhileReadOnly(t *testing.T) {
	paused := func(m *managed) {
		m.scope.readOnly, m.scope.registry.Spec.Paused = true, true
		m.scope.identity.Joining = "fleet-etcd-1"
	}
	corrupt := func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "CORRUPT"}} }
	for _, test := range []struct {
		changes      []func(*managed)
		reason, says string
	}{
		{[]func(*managed){replaced(0, 1, 2), paused}, operatorv1alpha1.ReasonWaiting, "still lets etcd member fleet-etcd-1 start without data, and nothing may be changed now: remove its key joining, or the operator does when spec.paused is false"},
		{[]func(*managed){replaced(0, 1, 2), paused, corrupt}, operatorv1alpha1.ReasonCorrupt, ""},
	} {
		m := newManaged(t, 3, test.changes...)
		if v := m.members(t.Context(), m.scope); v.Complete() || v.Reason != test.reason || v.State != verdict.Degraded || !strings.Contains(v.Message, test.says) || m.scope.identity.Joining == "" {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}

// TestTurns is about servers whose template changes together with that of etcd's
// members, as with spec.images.repository: they wait until all members are
// replaced and ready, unless nobody would gain by that, or they can't be replaced.
func TestTurns(t *testing.T) {
	young := func(i int) func(*managed) {
		return func(m *managed) {
			m.pods[i].CreationTimestamp, m.pods[i].Status.Conditions = metav1.NewTime(m.scope.now), nil
		}
	}
	lost := func(i int) func(*managed) {
		return func(m *managed) {
			m.state.Members[i].Err, m.pods[i].Status.Conditions = errors.New("it is lost"), nil
		}
	}
	for _, test := range []struct {
		reason  string
		changes []func(*managed)
		waits   bool
	}{
		{"members wait to be replaced", nil, true},
		{"the last one comes up", []func(*managed){replaced(0, 1, 2), young(2)}, true},
		{"one was evicted, and its pod is not made again yet", []func(*managed){func(m *managed) {
			m.state.Members[0].Err, m.pods = errors.New("there is no pod"), m.pods[1:]
		}}, true},
		{"pods are not seen, and their members serve", []func(*managed){replaced(0, 1, 2), func(m *managed) { m.pods = m.pods[1:] }}, false},
		{"one was replaced, and etcd doesn't let the next go at this moment", []func(*managed){replaced(0), func(m *managed) {
			m.pods[0].CreationTimestamp, m.state.ListErr = metav1.NewTime(m.scope.now), errors.New("a follower is behind")
		}}, true},
		{"the StatefulSet has changed, and nobody has looked yet", []func(*managed){replaced(0, 1, 2), func(m *managed) { m.set.Generation = 2 }}, true},
		{"all members are replaced", []func(*managed){replaced(0, 1, 2)}, false},
		{"a member is down for another reason", []func(*managed){replaced(0, 1, 2), func(m *managed) { m.pods[1].Status.Conditions = nil }}, false},
		{"one is lost, so that the others can't be replaced", []func(*managed){replaced(2), lost(2)}, false},
		{"one is lost and to be replaced itself", []func(*managed){replaced(0, 2), lost(1)}, true},
		{"an alarm is against replacing any", []func(*managed){func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} }}, false},
		{"no server is ready: the change may mend them", []func(*managed){func(m *managed) { m.deployment.Status.ReadyReplicas = 0 }}, false},
		{"servers are being replaced: members wait for them", []func(*managed){func(m *managed) { m.deployment.Status.UpdatedReplicas = 1 }}, false},
		{"it is read-only, and nothing is applied anyway", []func(*managed){func(m *managed) { m.scope.readOnly = true }}, false},
	} {
		m := newManaged(t, 3, test.changes...)
		m.members(t.Context(), m.scope)
		objects, v := m.serversTurn(t.Context(), m.scope)
		if waits := serversAt(objects) < 0; waits != test.waits || (!v.Complete()) != test.waits || !v.Complete() && (v.State != verdict.Degraded || v.Err != nil) {
			t.Errorf("%s: waits %t, %+v", test.reason, waits, v)
		}
	}
}
