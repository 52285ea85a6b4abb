package reliability

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// diskSize is how many MiB the disk has that becomes full: enough for all that a cell writes.
const diskSize = "2048"

// diskFull leaves no space on the disk of etcd's leader, which ends at the next write that
// wants some, and at every start until there is space again.
var diskFull = fault{name: "disk full", down: 1,
	prepare: func(s *stage) {
		s.moved("limit", diskSize)
		s.lead(s.limited())
	},
	strike: func(s *stage) struck {
		victim := s.pod(s.limited())
		if leader := s.e.EtcdLeader(s.registry); leader != victim.Name {
			s.t.Logf("%s leads meanwhile, and not %s", leader, victim.Name)
		}
		at := s.recorder.Now()
		s.e.Volume("fill", victim.Spec.NodeName, "data-"+victim.Name)
		return struck{at: at, heal: func() {
			s.says(victim.Name, "no space left on device", "raise spec.etcd.storage.size")
			s.e.Volume("free", victim.Spec.NodeName, "data-"+victim.Name)
			s.back(victim)
		}}
	},
	undo: func(s *stage) { s.moved("unlimit") },
}

// limited is the member whose disk becomes full: the one that no operation removes or
// replaces.
func (s *stage) limited() string { return s.registry.Name + "-etcd-0" }

// moved has the data of the limited member moved to another disk, or back. The member stands
// still meanwhile, and its pod is killed, so that the next one mounts the other disk.
func (s *stage) moved(command string, arguments ...string) {
	s.t.Helper()
	member := s.pod(s.limited())
	process := s.e.Process(s.arguments(member)...)
	if err := process.Pause(); err != nil {
		s.t.Fatal(err)
	}
	s.e.Volume(command, member.Spec.NodeName, "data-"+member.Name, arguments...)
	if err := s.e.Client.Delete(s.t.Context(), member.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
		s.t.Fatal(err)
	}
	s.back(member)
	s.complete()
}

// lead hands the leadership over to a member.
func (s *stage) lead(name string) {
	s.t.Helper()
	s.e.Eventually("etcd member "+name+" to lead", func(ctx context.Context) error {
		leader := s.e.EtcdLeader(s.registry)
		for _, member := range s.registry.Status.Etcd.Members {
			if member.Name != name || leader == name {
				continue
			}
			if _, err := s.e.Etcdctl(ctx, leader, "move-leader", member.ID); err != nil {
				return err
			}
			return fmt.Errorf("%s was asked to hand over just now", leader)
		}
		return nil
	})
}

// pod reads a pod, which may be replaced just now.
func (s *stage) pod(name string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{}
	s.e.Eventually("pod "+name+" to be on a node", func(ctx context.Context) error {
		if err := s.e.Get(ctx, name, pod); err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			return fmt.Errorf("it is %+v", pod.Status)
		}
		return nil
	})
	return pod
}

// says waits until the status of etcd says all of some texts.
func (s *stage) says(texts ...string) {
	s.t.Helper()
	s.e.Eventually(fmt.Sprintf("the status to say %q", texts), func(ctx context.Context) error {
		if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
			return err
		}
		message := ""
		for _, c := range s.registry.Status.Conditions {
			if c.Type == operatorv1alpha1.ConditionEtcdReady {
				message = c.Message
			}
		}
		for _, text := range texts {
			if !strings.Contains(message, text) {
				return fmt.Errorf("it says %q", message)
			}
		}
		return nil
	})
}
