package framework

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestLeftovers has namespaces of this process, of one that has ended, and of one whose number
// another process has by now: what is of the last two goes, with what is named after them, and
// nothing else.
func TestLeftovers(t *testing.T) {
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	killed := fmt.Sprintf("%d-%s", ended.Process.Pid, startOf(ended.Process.Pid))
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	namespace := func(name string, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	role := func(name string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		namespace("default", nil),
		namespace("e2e-mine", map[string]string{labelProcess: thisProcess()}),
		namespace("e2e-killed", map[string]string{labelProcess: killed}),
		namespace("e2e-reused", map[string]string{labelProcess: fmt.Sprintf("%d-1", os.Getpid())}),
		role("e2e-mine:scraper"), role("e2e-killed:scraper"), role("e2e-reused"), role("view"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cordoned"}, Spec: corev1.NodeSpec{Unschedulable: true}},
	).Build()
	if err := removeLeftovers(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names(t, c, &corev1.NamespaceList{}), names(t, c, &rbacv1.ClusterRoleList{})); got != "[default e2e-mine] [e2e-mine:scraper view]" {
		t.Errorf("left are %s", got)
	}
	node := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "cordoned"}, node); err != nil || node.Spec.Unschedulable {
		t.Errorf("the node takes no pods: %v", err)
	}
}

// TestGone expects the end of a package to say which namespace stays, and why.
func TestGone(t *testing.T) {
	stays := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "e2e-stays"}, Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Message: "no answer"}}}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(stays).Build()
	if err := namespaceGone(t.Context(), c, stays); err == nil || err.Error() != "it is still there; no answer" {
		t.Errorf("a namespace that stays: %v", err)
	}
	if err := namespaceGone(t.Context(), c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "e2e-gone"}}); err != nil {
		t.Errorf("a namespace that is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := await(ctx, func(context.Context) error { return fmt.Errorf("told so") }); err == nil {
		t.Error("a wait whose context has ended goes well")
	}
}

// names returns the names of all objects of a kind.
func names(t *testing.T, c client.Client, list client.ObjectList) (out []string) {
	t.Helper()
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	switch l := list.(type) {
	case *corev1.NamespaceList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	case *rbacv1.ClusterRoleList:
		for _, o := range l.Items {
			out = append(out, o.Name)
		}
	}
	return out
}
