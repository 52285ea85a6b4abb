package clusterregistry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/verdict"
)

// withoutController returns a registry whose controller was removed, with its Lease still
// in the inventory.
func withoutController(t *testing.T) *scope {
	t.Helper()
	s := look(t, "{spec: {mode: Aggregated}, status: {"+complete[2:]+"}}")
	s.Rendered = &render.Result{}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{controller.Lease(s.Objects)}
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	return s
}

// TestRetract takes the reports of a removed controller back, also when the operator is
// killed in between or the registry fails. The Lease says that there is something to do,
// and stays until that is done.
func TestRetract(t *testing.T) {
	var broken atomic.Bool
	reported := []string{"east", "west"}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, ofStatus := strings.CutSuffix(strings.TrimPrefix(request.URL.Path, "/apis/clusterregistry.k8s.io/v1beta1/clusters/"), "/status")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.Method == http.MethodGet:
			var items []string
			for _, name := range reported {
				items = append(items, fmt.Sprintf(`{"metadata": {"name": %q, "managedFields": [{"manager": "clusterregistry-controller-health", "operation": "Apply", "subresource": "status"}]}}`, name))
			}
			fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [%s]}`, strings.Join(items, ", "))
		case broken.Load() && name == "west":
			http.Error(w, "etcd is away", http.StatusInternalServerError)
		case ofStatus && request.Method == http.MethodPatch && request.URL.Query().Get("fieldManager") == "clusterregistry-controller-health":
			reported = slices.DeleteFunc(reported, func(other string) bool { return other == name })
			fmt.Fprintf(w, `{"kind": "Cluster", "apiVersion": "clusterregistry.k8s.io/v1beta1", "metadata": {"name": %q}}`, name)
		default:
			t.Errorf("it asks %s %s", request.Method, request.URL)
		}
	}))
	defer registry.Close()
	reconcile := func() *scope {
		s := withoutController(t)
		r := reading(t, s)
		r.Host = &rest.Config{Host: registry.URL}
		s.retraction = r.retract(t.Context(), s)
		return s
	}
	kept := func(s *scope) bool {
		if err := s.prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(s.Registry.Status.Inventory, controller.Lease(s.Objects))
	}

	broken.Store(true)
	s := reconcile()
	conditions := s.conditions()
	progressing := meta.FindStatusCondition(conditions, operatorv1alpha1.ConditionProgressing)
	if s.retraction.Complete() || !kept(s) || progressing.Status != "True" || !strings.Contains(progressing.Message, "cluster west") || !meta.IsStatusConditionTrue(conditions, operatorv1alpha1.ConditionReady) {
		t.Errorf("while the registry fails: %+v, %v", s.retraction, conditions)
	}
	if after, err := s.next(); err != nil || after > verdict.Vigil {
		t.Errorf("it is tried again after %s, %v", after, err)
	}
	broken.Store(false)
	if s = reconcile(); !s.retraction.Complete() || kept(s) || len(reported) > 0 {
		t.Errorf("by another operator: %+v, %v are left", s.retraction, reported)
	}
}

// TestRetractAwaits what clients need to reach this registry, and no other one.
func TestRetractAwaits(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*scope)
		want   string
	}{
		{"an aggregated registry is reached", func(*scope) {}, ""},
		{"the host cluster serves another one", func(s *scope) {
			s.record(operatorv1alpha1.ConditionAPIServiceReady, verdict.Waiting("GroupTaken", "").DegradedIf(true))
		}, operatorv1alpha1.ConditionAPIServiceReady},
		{"an independent registry is reached", func(s *scope) {
			s.Registry.Spec.Mode = operatorv1alpha1.ModeIndependent
			s.record(operatorv1alpha1.ConditionEndpointReady, verdict.Waiting("AddressPending", ""))
		}, ""},
		{"its servers are down", func(s *scope) {
			s.Registry.Spec.Mode = operatorv1alpha1.ModeIndependent
			s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ReplicasNotReady", ""))
		}, operatorv1alpha1.ConditionServerReady},
		{"an upgrade", func(s *scope) { s.upgrade = &upgrade.Upgrade{} }, "the upgrade to complete"},
	} {
		s := withoutController(t)
		if test.change(s); s.awaited() != test.want {
			t.Errorf("%s: it awaits %q, want %q", test.reason, s.awaited(), test.want)
		}
	}
}
