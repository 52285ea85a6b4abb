package simulation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestEmptied empties a member in place when it has just got its vote, while the record that it
// may start empty may still be mounted: what it has acknowledged by then counts.
func TestEmptied(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(3)
		w.empties(1)
		w.until("another one takes its place", 20*time.Minute, func() bool { voter, is := w.voter(1); return is && !voter })
		w.until("that has a vote", 10*time.Minute, func() bool { voter, _ := w.voter(1); return voter })
		w.empties(1)
		w.rests(40 * time.Minute)
	})
}

// TestSecondLoss has a second member lose its data while another one takes the place of the
// first: a person can approve the way out, the host cluster is led to no server meanwhile, and the
// registry comes to rest with what the survivor has.
func TestSecondLoss(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(3)
		w.empties(1)
		w.until("a learner takes the place of the first", 20*time.Minute, func() bool { voter, is := w.voter(1); return is && !voter })
		w.empties(2)
		w.accepted = true
		w.until("the loss is said", 15*time.Minute, func() bool { return w.registry().Status.Recovery != nil })
		w.asks("recover", func(r *operatorv1alpha1.ClusterRegistry) {
			lost := r.Status.Recovery
			r.Spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: name(0), ApprovedFor: lost.ID}
			for _, m := range lost.Members {
				if m.Name == name(0) {
					r.Spec.Recovery.AcceptDataLossUpTo = m.RevisionsLost
				}
			}
		})
		w.rests(time.Hour)
	})
}

// TestNoServer has no server answer for a while: the host cluster is led to none meanwhile, and to
// them again afterwards, without a person.
func TestNoServer(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(3)
		w.cutsServers(true)
		w.pass(10 * time.Minute)
		if len(w.host.list(apiServices, "")) > 0 {
			w.fails("the registry is registered")
		}
		w.cutsServers(false)
		w.rests(20 * time.Minute)
		if len(w.host.list(apiServices, "")) == 0 {
			w.fails("the registry is not registered")
		}
	})
}

func (w *world) cutsServers(cut bool) {
	w.note("the servers are cut off: %t", cut)
	for _, p := range w.pods {
		if p.disk == nil {
			p.cut = cut
		}
	}
}

// TestNoServerWithoutPermission takes the permission to be a part of the host cluster's API away
// before no server answers: the host cluster is led to none all the same, until it is given again.
func TestNoServerWithoutPermission(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		w.faults.kill = 0 // another operator would have the permission
		w.until("an operator runs", time.Minute, func() bool { return w.operator != nil })
		allowed := &w.operator.reconciler.Aggregated
		before := *allowed
		*allowed = nil
		w.cutsServers(true)
		w.pass(10 * time.Minute)
		if len(w.host.list(apiServices, "")) > 0 {
			w.fails("the registry is registered")
		}
		w.cutsServers(false)
		w.pass(10 * time.Minute)
		if len(w.host.list(apiServices, "")) > 0 {
			w.fails("the registry is registered without permission")
		}
		*allowed = before
		w.rests(20 * time.Minute)
		if len(w.host.list(apiServices, "")) == 0 {
			w.fails("the registry is not registered")
		}
	})
}

// TestSilentMember has one of five members be replaced while another one is silent: the learner is
// safe while a majority serves.
func TestSilentMember(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(5)
		w.cuts(4, true)
		w.empties(1)
		w.until("there are five members, and four serve", 30*time.Minute, func() bool {
			members, serving := w.number()
			voter, _ := w.voter(1)
			return members == 5 && serving == 4 && voter
		})
		w.cuts(4, false)
		w.rests(20 * time.Minute)
	})
}

// TestDiverged scales down while a member, which would be left, has other data: no member goes
// before that is settled.
func TestDiverged(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(3)
		w.diverges(0, 1)
		w.members(1)
		w.pass(10 * time.Minute)
		if message := w.condition("Progressing").Message; !strings.Contains(message, "different data") {
			w.fails("it is not said that the data differs: %s", message)
		}
		w.members(3)
		w.diverges(0, 0)
		w.rests(20 * time.Minute)
	})
}

// TestClaimDeleted deletes the claim of the only member, which is in use, and then asks for what
// replaces its pod: the data must not go with the pod. What the registry says to do leads out of it.
func TestClaimDeleted(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		pod := w.host.objects[id{podKind, key.namespace, name(0)}].GetUID()
		w.deletes(id{claimKind, key.namespace, contract.EtcdMemberClaim(name(0))})
		w.asks("more memory", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Etcd.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}
		})
		w.until("the volume outlives its claim", 3*time.Minute, func() bool { return w.policy(0) == "Retain" })
		w.pass(10 * time.Minute)
		if now := w.host.objects[id{podKind, key.namespace, name(0)}]; now == nil || now.GetUID() != pod {
			w.fails("the pod that keeps the claim is replaced")
		}
		w.until("another one has taken its place, and is alone", time.Hour, func() bool {
			w.tends()
			return w.shrinks == 0 && have(1)(w) && !w.terminating(name(0)) && w.ready()
		})
	})
}

// TestCertManagerAway has the webhook of cert-manager be away for five minutes: the operator looks
// again within 30 seconds, and notices within a minute that it is back.
func TestCertManagerAway(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		w.certManagerAway = true
		w.restarts()
		w.pass(5 * time.Minute)
		w.certManagerAway = false
		w.until("it is noticed that cert-manager is back", time.Minute, w.ready)
		w.rests(5 * time.Minute)
	})
}

// TestDelete deletes a registry, while the operator is killed at any write. Nothing is left but
// what is retained, and the host cluster is led to no servers that are gone.
func TestDelete(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		w.faults = rough
		w.deletes(key)
		w.pass(2 * time.Minute)
		w.faults = faults{}
		w.until("the registry is gone", 20*time.Minute, func() bool { return w.host.objects[key] == nil })
		w.pass(2 * time.Minute)
		if left := w.left(); len(left) > 0 {
			w.fails("%s are left", left)
		}
	})
}

// left returns the objects of the registry that are neither retained nor its data and keys.
func (w *world) left() (out []id) {
	for _, object := range w.host.objects {
		owned := object.GetLabels()[operatorv1alpha1.LabelManagedBy] == operatorv1alpha1.ManagedBy
		kept := object.GetAnnotations()[operatorv1alpha1.AnnotationRetain] != "" || object.kind == secretKind || object.kind == claimKind
		if owned && !kept {
			out = append(out, object.id)
		}
	}
	return out
}

// TestCreatedAgain deletes a registry and creates it again: it is ready with the etcd that was
// kept, and its history says whose clusters it has. The first one has none of others.
func TestCreatedAgain(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		etcd, first := w.etcd.id, w.registry().Status.History[0]
		w.deletes(key)
		w.until("the registry is gone", 20*time.Minute, func() bool { return w.host.objects[key] == nil })
		w.begins(1)
		w.rests(20 * time.Minute)
		again := w.registry().Status.History
		if w.etcd.id != etcd || first.Message != "" || len(again) != 1 || !strings.Contains(again[0].Message, "of an earlier ClusterRegistry of this name") {
			w.fails("etcd is %x, before %x; the first history says %q, the second one %+v", w.etcd.id, etcd, first.Message, again)
		}
	})
}
