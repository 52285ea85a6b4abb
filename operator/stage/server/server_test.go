package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// newStage returns the stage of the registry team/fleet with a spec and status in YAML, of
// which nothing is rendered and whose servers don't answer, in a host cluster with the given
// objects.
func newStage(t *testing.T, text string, objects ...client.Object) *Stage {
	t.Helper()
	o := operandtest.New(t, text, objects...)
	ask := func(context.Context, health.Server) (string, error) { return "", errors.New("it does not answer") }
	return &Stage{Access: servers.Access{Objects: o, Host: &rest.Config{}, Ask: ask}, Identity: identity.New(o)}
}

// TestScaledAway is about a paused registry whose Deployment somebody has scaled to 0, at a
// moment when its last pod is still terminating.
func TestScaledAway(t *testing.T) {
	deployment, pod := operandtest.Servers(0)
	pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"kubelet/here"}
	for what, objects := range map[string][]client.Object{"one pod ends": {deployment, pod}, "none is left": {deployment}} {
		s := newStage(t, "{spec: {mode: Aggregated, paused: true, server: {replicas: 2}}, status: {version: v0.1.0"+operandtest.Complete+"}}", objects...)
		s.Freeze("spec.paused is false")
		operandtest.RenderServers(s.Objects)
		v := s.Run(t.Context())
		if v.Complete() || v.Reason != operatorv1alpha1.ReasonReplicasNotReady || !strings.Contains(v.Message, "0 of 2 servers ready") || s.Registry.Status.Version != "v0.1.0" {
			t.Errorf("%s: %+v, version %s", what, v, s.Registry.Status.Version)
		}
	}
}

// TestBefore finds servers of before that have not ended.
func TestBefore(t *testing.T) {
	of := func(image string, ends bool) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: image}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar", Image: "mesh"}, {Name: "server", Image: image}}}}
		if ends {
			pod.DeletionTimestamp = new(metav1.Now())
		}
		return pod
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "server", "image": "new"}}}}}}}
	rendered := []*unstructured.Unstructured{{Object: map[string]any{"kind": "Service"}}, deployment}
	for _, test := range []struct {
		reason string
		pods   []corev1.Pod
		want   string
	}{
		{"no pods", nil, ""},
		{"one of before ends", []corev1.Pod{of("new", false), of("old", true)}, "pod old"},
		{"one of the release that is rendered ends", []corev1.Pod{of("new", true), of("new", false)}, ""},
		{"one of before runs, which the Deployment says", []corev1.Pod{of("old", false)}, ""},
	} {
		if got := before(rendered, test.pods); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestCrashes gives a new server up at its third crash.
func TestCrashes(t *testing.T) {
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no"}}
	backOff := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, test := range []struct {
		reason   string
		restarts int32
		now      corev1.ContainerState
		failed   bool
	}{
		{"the first crash", 0, crashed, false},
		{"the second", 1, crashed, false},
		{"it runs after the second", 2, running, false},
		{"the third", 2, crashed, true},
		{"the third, and it waits to be restarted", 2, backOff, true},
		{"it runs after the third: it may have come to stay", 3, running, false},
	} {
		deployment, pod := operandtest.Servers(1)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", RestartCount: test.restarts, State: test.now, LastTerminationState: crashed}}
		err := newStage(t, "{spec: {mode: Aggregated}}").failure(t.Context(), deployment, []corev1.Pod{*pod})
		if (err != nil) != test.failed {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestUpdating counts the pods that are still to go.
func TestUpdating(t *testing.T) {
	for want, status := range map[string]appsv1.DeploymentStatus{
		"0 of 3 updated, 3 old replicas terminating": {Replicas: 3},
		"2 of 3 updated, 1 old replica terminating":  {Replicas: 3, UpdatedReplicas: 2},
		"3 of 3 updated": {Replicas: 3, UpdatedReplicas: 3},
		"1 of 3 updated": {UpdatedReplicas: 1}, // as when it was scaled down meanwhile
	} {
		if got := updating(status, 3); got != want {
			t.Errorf("%+v: %q", status, got)
		}
	}
}

// TestHeld is about servers that don't get what the spec says: those that there are stay as
// they are, and are reported, and none is made.
func TestHeld(t *testing.T) {
	held := verdict.Waiting(operatorv1alpha1.ReasonAuditInvalid, "no policy")
	for _, test := range []struct {
		reason  string
		made    bool
		held    verdict.Verdict
		applied bool
		says    string
	}{
		{"none is made", false, held, false, "no policy"},
		{"none is changed, and what is wrong with them comes first", true, held, false, "0 of 2 servers ready"},
		{"they keep what they have: they are applied", true, held.DegradedIf(true), true, ""},
	} {
		var objects []client.Object
		deployment, pod := operandtest.Servers(2)
		if test.made {
			deployment.Labels = map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelNamespace: "team"}
			objects = []client.Object{deployment, pod}
		}
		s := newStage(t, "{spec: {mode: Aggregated, server: {replicas: 2}}}", objects...)
		s.Held = test.held
		operandtest.RenderServers(s.Objects)
		rendered, v := s.turn(t.Context())
		if applied := len(rendered) > 0; applied != test.applied || v.Complete() != test.applied {
			t.Errorf("%s: %d objects to apply, %+v", test.reason, len(rendered), v)
		}
		if test.applied {
			continue // by the registry in the host cluster, which is not there
		}
		if v := s.Run(t.Context()); v.Complete() || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}

// TestClosedNamespaces has the host cluster refuse what the servers need in kube-system, by a
// policy or for want of a right, and objects in the registry's own namespace: the former can be
// done without in the other mode alone, and only then that is said.
func TestClosedNamespaces(t *testing.T) {
	const way = "mode Independent"
	for _, test := range []struct {
		reason, kind, namespace string
		err                     error
		want                    string
		says                    bool
	}{
		{"a policy closes kube-system", "RoleBinding", "kube-system", apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "fleet", errors.New("the namespace is managed")), operatorv1alpha1.ReasonHostRefused, true},
		{"a webhook without a code does", "RoleBinding", "kube-system", apierrors.NewBadRequest("admission webhook denied the request"), operatorv1alpha1.ReasonHostRefused, true},
		{"the host cluster is slow", "RoleBinding", "kube-system", apierrors.NewTimeoutError("later", 1), operatorv1alpha1.ReasonInternalError, false},
		{"a quota is used up", "RoleBinding", "team", apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "fleet", errors.New("exceeded quota")), operatorv1alpha1.ReasonHostRefused, false},
	} {
		object := operandtest.Rendered(rbacv1.SchemeGroupVersion.WithKind(test.kind), "fleet")
		object.SetNamespace(test.namespace)
		reference := apply.Reference(object)
		s := newStage(t, "{spec: {mode: Aggregated}}")
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{reference}
		s.Rendered = &render.Result{Stages: map[render.Stage][]*unstructured.Unstructured{render.StageServer: {object}}}
		s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return test.err
			},
		})
		s.Applier = apply.New(s.Client, s.Live)
		found := s.Run(t.Context())
		if !found.Asked {
			t.Errorf("%s: it is not known which servers run", test.reason)
		}
		v := found.Verdict
		if v.Reason != test.want || v.Err == nil || !strings.Contains(v.Message, "apply "+reference.String()+": "+test.err.Error()) || strings.Contains(v.Message, way) != test.says {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}
