package controller

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestRenewTokens replaces a replica that is older than its ServiceAccount, in both modes,
// unless a rollout does; operator/tokens has the rest.
func TestRenewTokens(t *testing.T) {
	for _, test := range []struct {
		reason  string
		mode    operatorv1alpha1.Mode
		age     time.Duration // of the pod; the ServiceAccount is 10 minutes old
		rolls   bool
		says    string
		evicted bool
	}{
		{"it is older", operatorv1alpha1.ModeAggregated, time.Hour, false, "controller: 1 of 1 are older than ServiceAccount fleet-controller, which was deleted and recreated, and kube-apiserver may reject their tokens; fleet-controller-x is being replaced", true},
		{"it is older, in an independent registry", operatorv1alpha1.ModeIndependent, time.Hour, false, "fleet-controller-x is being replaced", true},
		{"it is newer", operatorv1alpha1.ModeAggregated, time.Minute, false, "", false},
		{"a rollout replaces it", operatorv1alpha1.ModeAggregated, time.Hour, true, "0 of 1 updated", false},
	} {
		objects := running(func(d *appsv1.Deployment, p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(time.Now().Add(-test.age))
			if test.rolls {
				d.Status.UpdatedReplicas = 0
			}
		})
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-controller", CreationTimestamp: metav1.NewTime(time.Now().Add(-10 * time.Minute))}}
		s := newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(objects, leased(runs), account)...)
		s.Registry.Spec.Mode = test.mode
		allowing(s, everything, nothing)
		found := s.Run(t.Context())
		if found.Complete() != (test.says == "") || !strings.Contains(found.Message, test.says) || !found.Usable() || (found.Rolling != "") != (test.says != "") {
			t.Errorf("%s: %+v", test.reason, found)
		}
		err := s.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-controller-x"}, &corev1.Pod{})
		if apierrors.IsNotFound(err) != test.evicted {
			t.Errorf("%s: the pod: %v", test.reason, err)
		}
	}
}
