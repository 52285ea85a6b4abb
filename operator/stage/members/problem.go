package members

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/placement"
)

// membersProblem says what is wrong with members that are not ready: what their
// pods tell, or else what etcd does.
func (s *Stage) membersProblem(ctx context.Context, state etcd.State, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if len(pods) == 0 {
		return s.Diagnoser().Replicas(ctx, set)
	}
	if problems := s.Diagnoser().Pods(ctx, pods); len(problems) > 0 {
		return strings.Join(slices.Concat(problems, s.contradicted(pods), s.cordoned(ctx, pods)), "; ")
	}
	if failures := state.Failures(); failures != "" || state.ListErr == nil {
		return failures
	}
	return state.ListErr.Error()
}

// contradicted says of members whose etcd ends so that they may have the only copy of what the
// others have lost, and how to go on: they are not replaced automatically.
func (s *Stage) contradicted(pods []corev1.Pod) (says []string) {
	if record := s.Identity.Record; record == nil || len(record.Members) < 2 {
		return nil
	}
	for i := range pods {
		if end, _ := diagnose.EtcdEnd(&pods[i]); end == diagnose.Contradicted {
			says = append(says, fmt.Sprintf("%s may have what the other members have lost, as after their volumes were set back to older copies, and is not replaced automatically: save its volume if you need that, and then give the member a new one: kubectl registry etcd replace -n %s %s", pods[i].Name, s.Registry.Namespace, pods[i].Name))
		}
	}
	return says
}

// cordoned says of members without a node that their volumes lie on nodes which are cordoned,
// and how to go on: the scheduler names neither. What can't be read says nothing.
func (s *Stage) cordoned(ctx context.Context, pods []corev1.Pod) (says []string) {
	for i := range pods {
		at := slices.IndexFunc(s.Volumes.Members, func(c corev1.PersistentVolumeClaim) bool { return c.Name == contract.EtcdMemberClaim(pods[i].Name) })
		if at < 0 || pods[i].Spec.NodeName != "" || pods[i].DeletionTimestamp != nil {
			continue
		}
		volume, nodes, err := placement.Cordoned(ctx, s.Live, &s.Volumes.Members[at])
		if err != nil || volume == "" {
			continue
		}
		said := fmt.Sprintf("the volume of %s, %s, can be used on %s only, which is cordoned: kubectl uncordon %s", pods[i].Name, volume, strings.Join(nodes, ", "), nodes[0])
		if len(s.Identity.Record.Members) > 1 {
			said += fmt.Sprintf("; or, if that node is to be removed, give the member a new volume on another one: kubectl registry etcd replace -n %s %s", s.Registry.Namespace, pods[i].Name)
		}
		says = append(says, said)
	}
	return says
}
