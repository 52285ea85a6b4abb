package framework

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// OperatorNamespace is where the operator runs.
	OperatorNamespace = "clusterregistry-system"
	operatorName      = "clusterregistry-operator"
)

// WithOperator returns the environment after it has made sure that the operator
// is there, and what registries run that the package's tests may create.
func (e *Env) WithOperator() *Env {
	e.t.Helper()
	if err := checkBuilt(Needs(e.t), Images(e.t)); err != nil {
		e.t.Fatal(err)
	}
	_, err := e.operator(e.t.Context())
	if apierrors.IsNotFound(err) {
		e.t.Fatal("this test needs the operator, which is not installed in the cluster: \"make install\" installs it")
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.Eventually("one of the operator's pods to be available", func(ctx context.Context) error {
		deployment, err := e.operator(ctx)
		if err == nil && deployment.Status.AvailableReplicas == 0 {
			err = fmt.Errorf("none is: look at \"kubectl -n %s describe pods\"", OperatorNamespace)
		}
		return err
	})
	return e
}

func (e *Env) operator(ctx context.Context) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	return deployment, e.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: operatorName}, deployment)
}

// StopOperator takes all of the operator's pods away, and returns what brings
// them back; the end of the test does so, too.
func (e *Env) StopOperator() (start func()) {
	e.t.Helper()
	deployment, err := e.operator(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	replicas := *deployment.Spec.Replicas
	e.t.Cleanup(func() { e.scaleOperator(context.Background(), replicas) })
	e.scaleOperator(e.t.Context(), 0)
	e.Eventually("the operator's pods to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := e.Client.List(ctx, &pods, client.InNamespace(OperatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": operatorName}); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are left", len(pods.Items))
		}
		return nil
	})
	return func() { e.scaleOperator(e.t.Context(), replicas) }
}

func (e *Env) scaleOperator(ctx context.Context, replicas int32) {
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = OperatorNamespace, operatorName
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if err := e.Client.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, patch)); err != nil {
		e.t.Errorf("scale the operator to %d: %v", replicas, err)
	}
}

// OperatorImage has the operator's pods run an image of this repository, and waits
// until they do.
func (e *Env) OperatorImage(image Image) {
	e.t.Helper()
	ctx := context.Background() // it also comes back at the end of a test
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = OperatorNamespace, operatorName
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"operator","image":%q}]}}}}`, image.Reference)
	if err := e.Client.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		e.t.Errorf("give the operator the image %s: %v", image.Reference, err)
		return
	}
	EventuallyAfter(e.t, "the operator to run "+image.Reference, func(ctx context.Context) error {
		deployment, err := e.operator(ctx)
		if err != nil {
			return err
		}
		return RolledOut(deployment)
	})
}

// RolledOut returns an error with a Deployment's status unless its pods are as its
// spec says, all of them available and none left of before.
func RolledOut(deployment *appsv1.Deployment) error {
	if s := deployment.Status; s.ObservedGeneration < deployment.Generation || s.UpdatedReplicas != *deployment.Spec.Replicas || s.Replicas != s.UpdatedReplicas || s.AvailableReplicas != s.Replicas {
		return fmt.Errorf("the status of Deployment %s is %+v", deployment.Name, s)
	}
	return nil
}

// KillOperator ends all pods of the operator at once and without warning.
func (e *Env) KillOperator(ctx context.Context) error {
	return e.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(OperatorNamespace),
		client.MatchingLabels{"app.kubernetes.io/name": operatorName}, client.GracePeriodSeconds(0))
}

// OperatorLeader returns the pod of the operator that leads. While that is dead,
// until another one has its Lease, there is none, which is an error.
func (e *Env) OperatorLeader(ctx context.Context) (*corev1.Pod, error) {
	key := client.ObjectKey{Namespace: OperatorNamespace, Name: operatorName}
	var lease coordinationv1.Lease
	if err := e.Client.Get(ctx, key, &lease); err != nil {
		return nil, err
	}
	// The holder is the name of the pod, "_" and a number of the process.
	key.Name, _, _ = strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	pod := &corev1.Pod{}
	return pod, e.Client.Get(ctx, key, pod)
}

// KillOperatorLeader ends the operator's leader without warning when it has led for a time,
// again and again until ctx ends, and returns how often. The time in which there is no leader
// does not count: kills that follow faster would test only that an operator that never runs
// does nothing.
func (e *Env) KillOperatorLeader(ctx context.Context, reign time.Duration) (times int) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last string
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return times
		case <-tick.C:
		}
		leader, err := e.OperatorLeader(ctx)
		if err != nil {
			continue // it may be dead
		}
		if leader.Name != last {
			last, since = leader.Name, time.Now()
		}
		if time.Since(since) >= reign && e.Client.Delete(ctx, leader, client.GracePeriodSeconds(0)) == nil {
			times++
		}
	}
}
