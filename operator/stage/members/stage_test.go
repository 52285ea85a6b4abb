package members

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
)

// newStage returns the stage of the registry team/fleet with a spec and status in YAML, of
// whose etcd nothing is recorded, in a host cluster with the given objects.
func newStage(t *testing.T, text string, objects ...client.Object) *Stage {
	t.Helper()
	o := operandtest.New(t, text, objects...)
	return &Stage{Objects: o, Authorities: &trust.Authorities{}, Identity: identity.New(o)}
}

// managed is the stage of a registry with an etcd of its own, whose members and servers
// serve, in a host cluster that answers evictions.
type managed struct {
	*Stage
	set        *appsv1.StatefulSet
	pods       []*corev1.Pod
	deployment *appsv1.Deployment
	state      etcd.State
	// refusal answers evictions, which are noted.
	refusal error
	evicted []string
	// others are further objects in the host cluster.
	others []client.Object
	// disarmed counts how often the alarm NOSPACE was disarmed.
	disarmed int
}

// newManaged returns one whose members all wait to be replaced, when nothing was
// changed about it.
func newManaged(t *testing.T, members int, changes ...func(*managed)) *managed {
	t.Helper()
	m := &managed{Stage: newStage(t, fmt.Sprintf("{spec: {mode: Aggregated, version: v0.1.0, etcd: {replicas: %d}}, status: {version: v0.1.0, etcd: {clusterID: c}%s}}", members, operandtest.Complete))}
	m.deployment, _ = operandtest.Servers(2)
	m.set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	record := &etcd.Record{InitialClusterState: contract.StateExisting, Replicas: int32(members), EtcdVersion: "v3.6.14", Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{}}}
	m.Identity.Record = record
	for i := range members {
		name, id := fmt.Sprintf("fleet-etcd-%d", i), fmt.Sprintf("a%d", i)
		record.Members[name] = id
		m.state.Members = append(m.state.Members, etcd.Member{Name: name, ID: id, ClusterID: "c", Leader: "a0", Term: 1, Version: "3.6.14"})
		m.state.List = append(m.state.List, etcd.Listed{ID: id, Name: name})
		long := metav1.NewTime(m.Now.Add(-time.Hour))
		m.pods = append(m.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "1", CreationTimestamp: long, Labels: map[string]string{
				operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: operand.ComponentEtcd, appsv1.ControllerRevisionHashLabelKey: "old"}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: long}}}})
	}
	for _, change := range changes {
		change(m)
	}
	ca, pair := operandtest.KeyPair(t)
	m.Authorities.Etcd.Current = ca
	m.Disarm = func(context.Context, etcd.Access, etcd.State) error { m.disarmed++; return m.refusal }
	m.Ask = func(context.Context, etcd.Access) etcd.State { return m.state }
	m.Mark = func(_ context.Context, _ etcd.Access, seen etcd.Position) (etcd.Position, error) {
		return etcd.Position{Revision: seen.Revision + 1, Mark: seen.Revision + 1, Upkeep: seen.Upkeep + 1}, nil
	}
	m.host(t, pair)
	operandtest.RenderServers(m.Objects)
	m.Rendered.Stages[render.StageEtcd] = []*unstructured.Unstructured{operandtest.Rendered(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "fleet-etcd")}
	return m
}

// host puts the registry's objects into a host cluster that lets members be evicted, and
// nothing be deleted. The pair opens etcd.
func (m *managed) host(t *testing.T, pair map[string][]byte) {
	t.Helper()
	objects := []client.Object{m.set, m.deployment, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: render.EtcdClientSecret(m.Registry)}, Data: pair}}
	for _, pod := range m.pods {
		objects = append(objects, pod)
	}
	objects = append(objects, m.others...)
	m.HostCluster = operandtest.Host(t, objects...)
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
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if m.refusal != nil {
				return m.refusal
			}
			return c.Patch(ctx, object, patch, options...)
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			t.Errorf("it deletes %s", object.GetName())
			return nil
		},
	})
	m.Applier = apply.New(m.Client, m.Live)
}
