package reliability

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// fault is what happens meanwhile.
type fault struct {
	name string
	// down is how many members it takes down.
	down int
	// node is true where a whole node is lost: requests that the host cluster sent to it fail
	// until it counts as lost.
	node bool
	// prepare makes what the fault needs, before clients are recorded, and undo takes it away,
	// when they no longer are.
	prepare, undo func(*stage)
	// strike has it happen.
	strike func(*stage) struck
}

// struck is a fault that has struck, and undoes it.
type struck struct {
	// at is the earliest moment at which it can have been felt, as the recorder tells the time:
	// after what it strikes was found, which may take long, and before it is made, since requests
	// may fail before the command that makes it returns.
	at time.Duration
	// heal waits until the registry has got over it, or undoes it. It is called before the
	// operation can be expected to end.
	heal func()
	// over ends it, after the operation.
	over func()
}

const (
	// reign is how long the operator's leader works before it is killed.
	reign = 10 * time.Second
	// lossLimit is after what time a lost node may not be felt any more.
	lossLimit = 90 * time.Second
)

var (
	operatorKilled = fault{name: "operator killed", strike: func(s *stage) struck {
		ctx, stop := context.WithCancel(s.t.Context())
		kills := make(chan int)
		before, at := s.leaderOfOperator(), s.recorder.Now()
		go func() { kills <- s.e.KillOperatorLeader(ctx, reign) }()
		return struck{at: at, heal: func() {
			s.e.Eventually("the operator's leader to be killed", func(context.Context) error {
				if now := s.leaderOfOperator(); now == before {
					return fmt.Errorf("%s still leads", now)
				}
				return nil
			})
		}, over: func() {
			stop()
			s.t.Logf("the operator's leader was killed %d times", <-kills)
		}}
	}}

	podKilled = fault{name: "member's pod killed", down: 1, strike: func(s *stage) struck {
		victim := s.victim()
		at := s.recorder.Now()
		if err := s.e.Client.Delete(s.t.Context(), victim.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
			s.t.Fatal(err)
		}
		return struck{at: at, heal: func() { s.back(victim) }}
	}}

	containerKilled = fault{name: "etcd's container killed in place", down: 1, strike: func(s *stage) struck {
		victim := s.victim()
		at := s.recorder.Now()
		s.kill(victim)
		return struck{at: at, heal: func() { s.back(victim) }}
	}}

	// The container is started again in its pod, without init containers: only the guard in
	// the container itself can notice.
	volumeEmptied = fault{name: "volume emptied in place", down: 1, strike: func(s *stage) struck {
		victim := s.victim()
		at := s.recorder.Now()
		s.e.EmptyVolume(victim.Spec.NodeName, "data-"+victim.Name)
		s.kill(victim)
		return struck{at: at, heal: func() {
			if s.leaves(victim) {
				s.left(victim)
				return
			}
			s.e.WaitCondition(s.registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonDataLost, "pod "+victim.Name+": container etcd exited with code 65", "has no data", "a new member takes its place")
			s.replacedMember(victim)
		}}
	}}

	claimDeleted = fault{name: "claim deleted", down: 1, strike: func(s *stage) struck {
		victim := s.victim()
		claim := &corev1.PersistentVolumeClaim{}
		claim.Namespace, claim.Name = s.e.Namespace, "data-"+victim.Name
		at := s.recorder.Now()
		err := errors.Join(s.e.Client.Delete(s.t.Context(), claim), s.e.Client.Delete(s.t.Context(), victim.DeepCopy(), client.GracePeriodSeconds(0)))
		if err != nil {
			s.t.Fatal(err)
		}
		return struck{at: at, heal: func() { s.replacedMember(victim) }}
	}}

	fileCorrupted = fault{name: "file corrupted", down: 1, strike: func(s *stage) struck {
		victim := s.victim()
		process := s.e.Process(s.arguments(victim)...)
		at := s.recorder.Now()
		// One that runs would write over some of it.
		err := errors.Join(process.Pause(), corrupt(process.File("/data/etcd/member/snap/db")), process.Kill())
		if err != nil {
			s.t.Fatal(err)
		}
		return struck{at: at, heal: func() { s.replacedMember(victim) }}
	}}

	nodeStopped = nodeLost("node stopped", "stop", "start")
	nodeCutOff  = nodeLost("node cut off", "partition", "heal")
)

// nodeLost takes away the node of a member until requests no longer fail for it.
func nodeLost(name, take, giveBack string) fault {
	return fault{name: name, down: 1, node: true, strike: func(s *stage) struck {
		victim := s.victim()
		noticed := s.e.HostMaySuffer("kube-apiserver sends requests to a server on a node that does not answer until the node counts as lost")
		at := s.recorder.Now()
		s.e.Node(take, victim.Spec.NodeName)
		return struck{at: at, heal: func() {
			if !s.leaves(victim) { // else nothing waits for it
				s.e.WaitCondition(s.registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersNotReady, victim.Name)
			}
			s.quiet()
			noticed()
			framework.Cluster(s.t, "node", giveBack, victim.Spec.NodeName)
		}}
	}}
}

// leaderOfOperator is the name of the pod of the operator that leads, empty while none does.
func (s *stage) leaderOfOperator() string {
	pod, err := s.e.OperatorLeader(s.t.Context())
	if err != nil {
		return ""
	}
	return pod.Name
}

// victim is the pod of etcd's leader, whose loss is felt most.
func (s *stage) victim() *corev1.Pod {
	s.t.Helper()
	return s.pod(s.e.EtcdLeader(s.registry))
}

// arguments tell the process of a member from all others of the computer.
func (s *stage) arguments(member *corev1.Pod) []string {
	return []string{"--name=" + member.Name, "--initial-cluster-token=" + s.e.Namespace + "/" + s.registry.Name}
}

// kill ends a member's process, and with it the container.
func (s *stage) kill(member *corev1.Pod) {
	s.t.Helper()
	s.e.KillProcess(s.arguments(member)...)
}

// leaves reports whether the operation removes a member, and adds none in its place: what has
// happened to it need not be repaired.
func (s *stage) leaves(member *corev1.Pod) bool {
	ordinal, err := strconv.ParseInt(member.Name[strings.LastIndex(member.Name, "-")+1:], 10, 32)
	if err != nil {
		s.t.Fatal(err)
	}
	return int32(ordinal) >= s.registry.Spec.Etcd.Replicas
}

// left waits until a member that leaves is no longer one, and its pod is gone.
func (s *stage) left(member *corev1.Pod) {
	s.t.Helper()
	s.e.Eventually("etcd member "+member.Name+" to leave", func(ctx context.Context) error {
		if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
			return err
		}
		for _, m := range s.registry.Status.Etcd.Members {
			if m.Name == member.Name {
				return fmt.Errorf("etcd is %+v, the operation %+v", s.registry.Status.Etcd, s.registry.Status.Operation)
			}
		}
		var pod corev1.Pod
		err := s.e.Get(ctx, member.Name, &pod)
		if err == nil {
			return fmt.Errorf("its pod is %+v", pod.Status)
		}
		return client.IgnoreNotFound(err)
	})
}

// back waits until a member that was killed runs again, or has left.
func (s *stage) back(member *corev1.Pod) {
	s.t.Helper()
	if s.leaves(member) {
		s.left(member)
		return
	}
	s.e.Eventually("pod "+member.Name+" to run again", func(ctx context.Context) error {
		var now corev1.Pod
		if err := s.e.Get(ctx, member.Name, &now); err != nil {
			return err
		}
		if now.UID == member.UID && restarts(now) == restarts(*member) {
			return fmt.Errorf("nothing has happened to it: %+v", now.Status.ContainerStatuses)
		}
		return s.e.PodReady(ctx, member.Name)
	})
}

func restarts(pod corev1.Pod) (count int32) {
	for _, status := range pod.Status.ContainerStatuses {
		count += status.RestartCount
	}
	return count
}

// replacedMember waits until another member has taken the place of one that was lost, or it
// has left.
func (s *stage) replacedMember(lost *corev1.Pod) {
	s.t.Helper()
	if s.leaves(lost) {
		s.left(lost)
		return
	}
	before := ""
	for _, member := range s.registry.Status.Etcd.Members {
		if member.Name == lost.Name {
			before = member.ID
		}
	}
	s.e.Eventually("etcd member "+lost.Name+" to be replaced", func(ctx context.Context) error {
		if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
			return err
		}
		for _, member := range s.registry.Status.Etcd.Members {
			if member.Name == lost.Name && member.ID != before && s.registry.Status.Operation == nil {
				return s.e.PodReady(ctx, lost.Name)
			}
		}
		return fmt.Errorf("it was %s, and the status is %+v, the operation %+v", before, s.registry.Status.Etcd, s.registry.Status.Operation)
	})
}

// corrupt overwrites all of a file.
func corrupt(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	garbage := make([]byte, info.Size())
	for i := range garbage {
		garbage[i] = byte(i * 7)
	}
	_, err = file.WriteAt(garbage, 0)
	return errors.Join(err, file.Sync(), file.Close())
}
