package clusterregistry

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestNotAggregated is about what a registry does that may not be a part of the
// host's API: one that is not installed does nothing, and one that is stays as it is.
func TestNotAggregated(t *testing.T) {
	ready := func(s *scope, kind string) *metav1.Condition { return meta.FindStatusCondition(s.conditions(), kind) }

	s := look(t, "{spec: {version: v0.1.0, mode: Aggregated, etcd: {replicas: 1}}}")
	s.Rendered = nil
	reading(t, s).run(t.Context(), s)
	if s.Rendered != nil || len(s.Registry.Status.Inventory) > 0 {
		t.Error("something of it is rendered")
	}
	for kind, want := range map[string]string{"VersionSupported": "True", "CertificatesReady": "Unknown", "APIServiceReady": "False", "Ready": "False"} {
		if c := ready(s, kind); string(c.Status) != want || want == "Unknown" && c.Message != "Waiting for APIServiceReady" {
			t.Errorf("%s is %s: %s, want %s", kind, c.Status, c.Message, want)
		}
	}
	if c := ready(s, "Ready"); c.Reason != operatorv1alpha1.ReasonAggregationNotAllowed {
		t.Errorf("Ready says %s: %s", c.Reason, c.Message)
	}

	s = look(t, "{spec: {version: v0.2.0, mode: Aggregated, etcd: {replicas: 1}}, status: {version: v0.1.0"+complete+"}}")
	s.Aggregation = permission.Namespaces{}.Aggregation(s.Pass)
	if v := s.plan(released); !v.Complete() || s.Registry.Status.Operation != nil || s.Release.Version != "v0.1.0" || s.PausedUntil() == "" {
		t.Errorf("an upgrade begins, or changes are made: %+v, %+v, %s", v, s.Registry.Status.Operation, s.Release.Version)
	}
	if c := ready(s, "Progressing"); c.Status != "False" || c.Reason != operatorv1alpha1.ReasonAggregationNotAllowed || !strings.Contains(c.Message, "allowed in namespace team") {
		t.Errorf("Progressing is %+v", c)
	}
	s.found[operatorv1alpha1.ConditionAPIServiceReady] = verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "down")
	if c := ready(s, "APIServiceReady"); c.Reason != operatorv1alpha1.ReasonBackendDown || !strings.HasPrefix(c.Message, "down; mode Aggregated is not allowed") {
		t.Errorf("what hurts the host is not named first: %+v", c)
	}
}
