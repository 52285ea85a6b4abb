package reliability

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// operation is what is done to a registry while a fault strikes.
type operation struct {
	name string
	// down is how many members it takes down at a time.
	down int
	// to is how many members there are afterwards, of so many; nil for as many.
	to func(members int32) int32
	// independent is true for what only a registry with an endpoint of its own has.
	independent bool
	// prepare makes what the operation needs, before clients are recorded, and undo brings the
	// registry back to where it was, when they no longer are.
	prepare, undo func(*stage)
	// begin begins it, and returns when it is under way. Nil for no operation.
	begin func(*stage)
	// check looks at what it has made, once the registry is Ready again.
	check func(*stage)
}

// target is how many members there are after the operation.
func (o operation) target(members int32) int32 {
	if o.to == nil {
		return members
	}
	return o.to(members)
}

// least is how many voters there are at least meanwhile.
func (o operation) least(members int32) int32 { return min(members, o.target(members)) }

// possible reports whether an etcd of so many members can go through it: what has one member
// has no other to copy from.
func (o operation) possible(members int32) bool {
	switch o.name {
	case replacement.name:
		return members > 1
	case defragmentation.name:
		return members > 1 // a single one has its maintenance window, see e2e/integration
	}
	return o.target(members) >= 1
}

var (
	steady = operation{name: "steady"}

	upgrade = operation{name: "upgrade", down: 1, begin: func(s *stage) {
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
			spec.Version = operatorv1alpha1.Version(newest(s.t).Version)
		})
		s.underWay(operatorv1alpha1.OperationUpgrade, operatorv1alpha1.PhaseEtcd)
	}, check: func(s *stage) {
		if want := newest(s.t).Version; s.registry.Status.Version != want {
			s.t.Errorf("it runs %s, not %s", s.registry.Status.Version, want)
		}
	}}

	// defragmentation begins automatically when much of the files is free. The registry is paused
	// while that is brought about.
	defragmentation = operation{name: "defragmentation", down: 1, prepare: func(s *stage) {
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Paused = true })
		s.e.WaitCondition(s.registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionFalse, operatorv1alpha1.ReasonPaused)
		s.fragment()
		s.fragmented = map[string]bool{}
		for _, member := range s.registry.Status.Etcd.Members {
			s.fragmented[member.ID] = member.DefragmentedTime == nil
		}
	}, begin: func(s *stage) {
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Paused = false })
		s.underWay(operatorv1alpha1.OperationDefragmentation, "")
	}, check: func(s *stage) {
		s.defragmented()
		s.complete()
	}}

	// replacement is of a member that is well, which is not the leader.
	replacement = operation{name: "replacement", down: 1, begin: func(s *stage) {
		leader := s.e.EtcdLeader(s.registry)
		for _, member := range s.registry.Status.Etcd.Members {
			if member.Name != leader {
				s.replaced = member
			}
		}
		s.e.Update(s.registry, func() {
			if s.registry.Annotations == nil {
				s.registry.Annotations = map[string]string{}
			}
			s.registry.Annotations[operatorv1alpha1.AnnotationReplaceMember] = s.replaced.ID
		})
		s.underWay(operatorv1alpha1.OperationReplacement, "")
	}, check: func(s *stage) {
		for _, member := range s.registry.Status.Etcd.Members {
			if member.ID == s.replaced.ID {
				s.t.Errorf("%s was not replaced", member.Name)
			}
		}
	}}

	// The CA of etcd replaces members and servers, to trust both and then only the new one; the
	// other two replace no pod.
	etcdRotation = rotation("etcd", contract.EtcdCASuffix, operation{down: 1}, operatorv1alpha1.PhaseTrust,
		func(r *operatorv1alpha1.Rotation) *int32 { return &r.Etcd })
	servingRotation = rotation("serving", contract.ServingCASuffix, operation{}, "",
		func(r *operatorv1alpha1.Rotation) *int32 { return &r.Serving })
	// Clients have copies of what it signed, so the rotation is complete when the new one signs.
	// The previous one is dropped afterwards.
	clientRotation = rotation("client", contract.ClientCASuffix, operation{independent: true, undo: func(s *stage) {
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.TLS.Rotation.Drop.Client = s.generation - 1 })
		s.e.Eventually("the previous CA to be dropped", func(ctx context.Context) error {
			if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
				return err
			}
			for _, certificate := range s.registry.Status.Certificates {
				if certificate.Use == operatorv1alpha1.CATrusted {
					return fmt.Errorf("%s is trusted, and the operation is %+v", certificate.Name, s.registry.Status.Operation)
				}
			}
			return nil
		})
		s.complete()
	}}, "", func(r *operatorv1alpha1.Rotation) *int32 { return &r.Client })

	scaleUp   = scale("scale up", map[int32]int32{1: 3, 3: 5})
	scaleDown = scale("scale down", map[int32]int32{5: 3, 3: 1})
)

// rotation gives a CA another key. It is under way in a phase; in any, where none is given.
func rotation(ca, suffix string, o operation, phase operatorv1alpha1.OperationPhase, number func(*operatorv1alpha1.Rotation) *int32) operation {
	o.name = "rotation of the " + ca + " CA"
	o.begin = func(s *stage) {
		s.generation = max(1, *number(&s.registry.Spec.TLS.Rotation)) + 1
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { *number(&spec.TLS.Rotation) = s.generation })
		s.underWay(operatorv1alpha1.OperationRotation, phase)
	}
	o.check = func(s *stage) {
		name := contract.Generation(s.registry.Name+suffix, s.generation)
		for _, certificate := range s.registry.Status.Certificates {
			if certificate.Name == name && certificate.Use == operatorv1alpha1.CASigning {
				return
			}
		}
		s.t.Errorf("the CA %s does not sign: %+v", name, s.registry.Status.Certificates)
	}
	return o
}

// scale changes the number of members. Of an etcd of a number that is not in to, it can't.
func scale(name string, to map[int32]int32) operation {
	o := operation{name: name, to: func(members int32) int32 { return to[members] }}
	o.begin = func(s *stage) {
		s.members = s.registry.Spec.Etcd.Replicas
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = to[s.members] })
		s.underWay(operatorv1alpha1.OperationScale, "")
	}
	o.undo = func(s *stage) {
		s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = s.members })
		s.complete()
	}
	o.check = func(s *stage) {
		if n := s.registry.Spec.Etcd.Replicas; s.registry.Status.Etcd.Ready != fmt.Sprintf("%d/%d", n, n) {
			s.t.Errorf("%s etcd members are ready, of %d", s.registry.Status.Etcd.Ready, n)
		}
	}
	return o
}

// underWay waits until an operation is in a phase; any, where none is given.
func (s *stage) underWay(kind operatorv1alpha1.OperationType, phase operatorv1alpha1.OperationPhase) {
	s.t.Helper()
	s.e.Eventually(fmt.Sprintf("the operation %s to be under way", kind), func(ctx context.Context) error {
		s.poke(ctx)
		if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
			return err
		}
		o := s.registry.Status.Operation
		if o == nil || o.Type != kind || phase != "" && o.Phase != phase {
			return fmt.Errorf("the operation is %+v, of a registry with conditions %+v", o, s.registry.Status.Conditions)
		}
		return nil
	})
}
