package members

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// ownership is that of an etcd that this registry is given, and that no one has had.
func ownership() Ownership {
	return Ownership{
		Owned: func(etcd.Access, context.Context) (etcd.Owned, error) { return etcd.Owned{}, nil },
		Own: func(_ etcd.Access, _ context.Context, owner etcd.Owner, seen etcd.Owned) (etcd.Owned, error) {
			return etcd.Owned{Owner: owner, Revision: seen.Revision + 1}, nil
		},
		Watches: func(string) bool { return true },
	}
}

// hostCluster is the namespace by which etcd knows the host cluster.
func hostCluster() client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "host"}}
}

// TestOwner is about an external etcd that belongs to another registry, which is there or gone.
func TestOwner(t *testing.T) {
	other := func(host, namespace, name, uid string) etcd.Owned {
		return etcd.Owned{Owner: etcd.Owner{Host: host, Namespace: namespace, Name: name, UID: uid}, Revision: 5}
	}
	there := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other", UID: types.UID("2")}}
	for _, test := range []struct {
		what   string
		seen   etcd.Owned
		change func(*Stage)
		owns   bool
		reason string
		says   []string
	}{
		{"it is no one's", etcd.Owned{}, nil, true, "", nil},
		{"it is this registry's", other("host", "team", "fleet", "1"), nil, false, "", nil},
		{"this registry was deleted, and is created again", other("host", "team", "fleet", "0"), nil, true, "", nil},
		{"another registry's", other("host", "team", "other", "2"), nil, false, "EtcdTaken", []string{"etcd belongs to ClusterRegistry team/other:", "delete the other one"}},
		{"another registry's that was created again", other("host", "team", "other", "0"), nil, true, "", nil},
		{"another registry's that is gone", other("host", "team", "gone", "3"), nil, true, "", nil},
		{"one of another host cluster, whose name is the same", other("abroad", "team", "fleet", "1-1"), nil, false, "EtcdTaken", []string{"team/fleet of another host cluster", "is abroad)", "etcdctl del " + etcd.OwnerKey}},
		{"one of another operator", other("host", "elsewhere", "gone", "3"), func(s *Stage) {
			s.Ownership.Watches = func(namespace string) bool { return namespace != "elsewhere" }
		}, false, "EtcdTaken", []string{"elsewhere/gone, in a namespace that this operator does not manage", "etcdctl del " + etcd.OwnerKey}},
		{"one that an operator runs", etcd.Owned{Managed: true}, nil, false, "EtcdTaken", []string{"an operator runs this etcd", "etcdctl del " + etcd.MarkKey}},
		{"no one knows whose", etcd.Owned{Revision: 5, Err: errors.New("no braces")}, nil, false, "EtcdTaken", []string{"can't be understood (no braces)", "etcdctl del " + etcd.OwnerKey}},
		{"nothing may be changed", etcd.Owned{}, func(s *Stage) { s.Freeze("spec.paused is false") }, false, "", nil},
		{"another one is faster", etcd.Owned{}, func(s *Stage) {
			s.Ownership.Own = func(etcd.Access, context.Context, etcd.Owner, etcd.Owned) (etcd.Owned, error) {
				return other("host", "team", "other", "2"), nil
			}
		}, false, "EtcdTaken", []string{"team/other"}},
		{"it may not be read", etcd.Owned{}, func(s *Stage) {
			s.Ownership.Owned = func(etcd.Access, context.Context) (etcd.Owned, error) {
				return etcd.Owned{}, errors.New("permission denied")
			}
		}, false, "ExternalUnreachable", []string{"permission denied", "Secret etcd must be allowed"}},
		{"it is full", etcd.Owned{}, func(s *Stage) {
			s.found.State.Alarms = []etcd.Alarm{{MemberID: "a1", Type: etcd.AlarmNoSpace}}
			s.Ownership.Own = func(etcd.Access, context.Context, etcd.Owner, etcd.Owned) (etcd.Owned, error) {
				return etcd.Owned{}, errors.New("no space")
			}
		}, false, "NoSpace", []string{"etcdctl alarm disarm", "besides, no space"}},
	} {
		s := newStage(t, "{spec: {etcd: {external: {tlsSecretRef: {name: etcd}}}}}", hostCluster(), there.DeepCopy())
		s.Ownership = ownership()
		s.Ownership.Owned = func(etcd.Access, context.Context) (etcd.Owned, error) { return test.seen, nil }
		var wrote *etcd.Owner
		own := s.Ownership.Own
		s.Ownership.Own = func(access etcd.Access, ctx context.Context, owner etcd.Owner, seen etcd.Owned) (etcd.Owned, error) {
			wrote = &owner
			return own(access, ctx, owner, seen)
		}
		if test.change != nil {
			test.change(s)
		}
		v := s.owned(t.Context(), etcd.Access{})
		if v.Reason != test.reason || v.Complete() != (test.reason == "") || !v.Complete() && v.State != verdict.ReadOnly {
			t.Errorf("%s: %+v", test.what, v)
		}
		for _, word := range test.says {
			if !strings.Contains(v.Message, word) {
				t.Errorf("%s: it says %q, want %q", test.what, v.Message, word)
			}
		}
		if (wrote != nil) != test.owns || wrote != nil && (wrote.Host != "host" || wrote.Namespace != "team" || wrote.Name != "fleet" || wrote.UID != "1") {
			t.Errorf("%s: written is %+v", test.what, wrote)
		}
	}
}

// TestTakenIsNotRecorded has a registry be given another etcd after one that belongs to another
// registry.
func TestTakenIsNotRecorded(t *testing.T) {
	ca, pair := operandtest.KeyPair(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "etcd"}, Data: pair}
	s := newStage(t, "{spec: {etcd: {external: {endpoints: ['https://a:2379', 'https://b:2379'], tlsSecretRef: {name: etcd}}}}}", secret, hostCluster())
	s.Authorities.Etcd.Current, s.Ownership = ca, ownership()
	s.Ask = func(context.Context, etcd.Access) etcd.State {
		return etcd.State{Members: []etcd.Member{{Name: "a:2379", ID: "a0", ClusterID: "c", Leader: "a0", Version: "3.6.14"}, {Name: "b:2379", Err: errors.New("down")}}, List: []etcd.Listed{{ID: "a0", Name: "m0"}}}
	}
	s.Ownership.Owned = func(access etcd.Access, _ context.Context) (etcd.Owned, error) {
		if len(access.Endpoints) != 1 || access.Endpoints["a:2379"] == "" {
			t.Errorf("asked are %v, not those that are ready", access.Endpoints)
		}
		return etcd.Owned{Owner: etcd.Owner{Host: "abroad", Namespace: "team", Name: "fleet", UID: "9"}, Revision: 5}, nil
	}
	if found := s.Run(t.Context()); found.Reason != operatorv1alpha1.ReasonEtcdTaken || found.State.Serves() != nil || s.Registry.Status.Etcd.ClusterID != "" {
		t.Errorf("found is %+v, and recorded %q", found.Verdict, s.Registry.Status.Etcd.ClusterID)
	}
}
