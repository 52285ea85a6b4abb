package turn

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// server returns a server's pod of an age, that may be ready.
func server(now time.Time, age time.Duration, ready bool) *corev1.Pod {
	_, pod := operandtest.Servers(2)
	pod.CreationTimestamp = metav1.NewTime(now.Add(-age))
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return pod
}

// TestReplacing is about pods of servers of which two are desired.
func TestReplacing(t *testing.T) {
	now := time.Now()
	ending := func(ago time.Duration) *corev1.Pod {
		pod := server(now, time.Hour, true)
		pod.DeletionTimestamp = new(metav1.NewTime(now.Add(-ago)))
		return pod
	}
	ready := server(now, time.Hour, true)
	for _, test := range []struct {
		reason string
		pods   []*corev1.Pod
		want   bool
	}{
		{"both are ready", []*corev1.Pod{ready, ready}, false},
		{"one was made just now", []*corev1.Pod{ready, server(now, time.Minute, false)}, true},
		{"one has not become ready for long: that is another problem", []*corev1.Pod{ready, server(now, ComingUp, false)}, false},
		{"one was told to end, and the next is not made yet", []*corev1.Pod{ready, ending(time.Second)}, true},
		{"one was told to end, and the next is ready", []*corev1.Pod{ready, ready, ending(time.Second)}, false},
		{"one hangs while it ends", []*corev1.Pod{ready, ending(ComingUp)}, false},
	} {
		deployment, _ := operandtest.Servers(2)
		var pods []corev1.Pod
		for _, pod := range test.pods {
			pods = append(pods, *pod)
		}
		if got := Replacing(now, deployment, pods); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

// TestServers asks the Deployment first, and then the pods.
func TestServers(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*appsv1.Deployment, *corev1.Pod)
		want   bool
	}{
		{"nothing is under way", func(*appsv1.Deployment, *corev1.Pod) {}, false},
		{"its change is not observed yet", func(d *appsv1.Deployment, _ *corev1.Pod) { d.Generation = 2 }, true},
		{"one is of the previous template", func(d *appsv1.Deployment, _ *corev1.Pod) { d.Status.UpdatedReplicas = 1 }, true},
		{"an old one is still there", func(d *appsv1.Deployment, _ *corev1.Pod) { d.Status.Replicas = 3 }, true},
		{"a pod was made again", func(_ *appsv1.Deployment, p *corev1.Pod) {
			p.CreationTimestamp, p.Status.Conditions = metav1.Now(), nil
		}, true},
	} {
		deployment, _ := operandtest.Servers(2)
		pod := server(time.Now(), time.Hour, true)
		test.change(deployment, pod)
		objects := operandtest.New(t, operandtest.InstalledAggregated, deployment, pod)
		operandtest.RenderServers(objects)
		if got, err := Servers(t.Context(), objects); got != test.want || err != nil {
			t.Errorf("%s: %t, %v", test.reason, got, err)
		}
	}
	none := operandtest.New(t, operandtest.InstalledAggregated)
	operandtest.RenderServers(none)
	if got, err := Servers(t.Context(), none); got || err != nil {
		t.Errorf("there is no Deployment: %t, %v", got, err)
	}
}

// TestNotReplaced tells a refusal that is expected from one that is not.
func TestNotReplaced(t *testing.T) {
	_, pod := operandtest.Servers(1)
	expected := NotReplaced(pod, apierrors.NewTooManyRequests("disruption budget", 0))
	if expected.Err != nil || expected.State != verdict.Degraded || !strings.HasPrefix(expected.Message, pod.Name+" is next") {
		t.Errorf("%+v", expected)
	}
	if v := NotReplaced(pod, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))); v.Err == nil {
		t.Errorf("%+v", v)
	}
}
