package server

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestRenewTokens replaces a server that is older than its ServiceAccount, unless it has
// no token or a rollout replaces it; operator/tokens has the rest.
func TestRenewTokens(t *testing.T) {
	for _, test := range []struct {
		reason  string
		mode    operatorv1alpha1.Mode
		rolls   bool
		evicted bool
	}{
		{"it is older", operatorv1alpha1.ModeAggregated, false, true},
		{"an independent one's has no token", operatorv1alpha1.ModeIndependent, false, false},
		{"a rollout replaces it", operatorv1alpha1.ModeAggregated, true, false},
	} {
		s := newStage(t, operandtest.InstalledAggregated)
		s.Registry.Spec.Mode = test.mode
		operandtest.RenderServers(s.Objects)
		deployment, pod := operandtest.Servers(1)
		if test.rolls {
			deployment.Status.UpdatedReplicas = 0
		}
		pod.UID, pod.CreationTimestamp = "1", metav1.NewTime(s.Now.Add(-time.Hour))
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server", CreationTimestamp: metav1.NewTime(s.Now.Add(-time.Minute))}}
		s.HostCluster = operandtest.Host(t, deployment, account, pod)
		v := s.renewTokens(t.Context(), deployment, []corev1.Pod{*pod})
		err := s.Live.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
		if v.Complete() == test.evicted || apierrors.IsNotFound(err) != test.evicted || (s.found.Rolling != "") != test.evicted {
			t.Errorf("%s: %+v, rolling %q, the pod: %v", test.reason, v, s.found.Rolling, err)
		}
	}
}
