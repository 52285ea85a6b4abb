package clusterregistry

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
)

// TestServersWaitForMembers has the servers' Deployment, which would change, stay as it
// is while the stage of etcd has found that members are replaced.
func TestServersWaitForMembers(t *testing.T) {
	for _, replacing := range []bool{false, true} {
		s := look(t, operandtest.InstalledAggregated)
		deployment, _ := operandtest.Servers(2)
		deployment.Labels = s.Meta("", operand.ComponentServer).Labels
		r := reading(t, s, deployment, s.Registry.DeepCopy())
		rendered := operandtest.Rendered(appsv1.SchemeGroupVersion.WithKind("Deployment"), deployment.Name)
		changed := maps.Clone(deployment.Labels)
		changed["changed"] = "yes"
		rendered.SetLabels(changed)
		s.Rendered = &render.Result{Stages: map[render.Stage][]*unstructured.Unstructured{render.StageServer: {rendered}}}
		s.Members.Replacing = replacing
		r.server(t.Context(), s)
		now, err := s.Deployment(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if changed := now.Labels["changed"] == "yes"; changed == replacing {
			t.Errorf("members are replaced: %t, and the Deployment is changed: %t", replacing, changed)
		}
	}
}

// TestNoted has a part that is done with a note stay True, and the registry Ready.
func TestNoted(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated, etcd: {replicas: 1}}}")
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	s.record(operatorv1alpha1.ConditionEtcdReady, done.Note(operatorv1alpha1.ReasonVolumesDiffer, "data-fleet-etcd-0 has 8Gi"))
	conditions := s.conditions()
	etcd, ready := meta.FindStatusCondition(conditions, operatorv1alpha1.ConditionEtcdReady), meta.FindStatusCondition(conditions, operatorv1alpha1.ConditionReady)
	if etcd.Status != "True" || etcd.Reason != operatorv1alpha1.ReasonVolumesDiffer || !strings.HasSuffix(etcd.Message, "; data-fleet-etcd-0 has 8Gi") || ready.Status != "True" || ready.Reason != operatorv1alpha1.ReasonReady {
		t.Errorf("%+v, %+v", etcd, ready)
	}
}
