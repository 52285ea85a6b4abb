package controller

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
)

// TestWithdraw takes the rights and the pods of a controller away while the host cluster
// serves another registry, and brings them back.
func TestWithdraw(t *testing.T) {
	s, there := takes(t)
	s.TakenBy = "ClusterRegistry team/other"
	if found := s.Run(t.Context()); found.Reason != "GroupTaken" || !found.Usable() || len(there()) > 0 ||
		!strings.Contains(found.Message, "the API group in the host cluster belongs to ClusterRegistry team/other") || !strings.Contains(found.Message, "waiting for pod fleet-controller-x to terminate") {
		t.Errorf("%+v, %v", found, there())
	}
	s.TakenBy = ""
	s.Run(t.Context())
	if len(there()) != 2 {
		t.Errorf("the group is its own again, and there are %v", there())
	}
	s.TakenBy = "ClusterRegistry team/other"
	s.FreezeBy(operatorv1alpha1.ConditionAPIServiceReady, "mode Aggregated is allowed in namespace team")
	if found := s.Run(t.Context()); found.Reason != "GroupTaken" || len(there()) > 0 {
		t.Errorf("it may no longer be aggregated, and another one is: %+v, %v", found, there())
	}
}

// TestLeft withdraws the controller of a registry of which nothing is rendered, where another one has
// its place.
func TestLeft(t *testing.T) {
	s, there := takes(t)
	s.Rendered = nil
	if v := Left(t.Context(), s.Objects, ""); !v.Complete() || len(there()) != 2 {
		t.Errorf("no one has its place: %+v, %v", v, there())
	}
	server := operatorv1alpha1.ObjectReference{Group: "apps", Kind: "Deployment", Namespace: "team", Name: "fleet-server"}
	s.Registry.Status.Inventory = append(s.Registry.Status.Inventory, server)
	if v := Left(t.Context(), s.Objects, "ClusterRegistry team/other"); v.Reason != "GroupTaken" || !v.Usable() || len(there()) > 0 || !strings.Contains(v.Message, "waiting for pod fleet-controller-x to terminate") {
		t.Errorf("%+v, %v", v, there())
	}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{server}
	if v := Left(t.Context(), s.Objects, "ClusterRegistry team/other"); !v.Complete() {
		t.Errorf("it has no controller: %+v", v)
	}
}

// TestWithdrawnLater keeps them while a person has paused the registry.
func TestWithdrawnLater(t *testing.T) {
	s, there := takes(t)
	s.TakenBy = "ClusterRegistry team/other"
	s.Freeze("spec.paused is false")
	if found := s.Run(t.Context()); found.Reason != "GroupTaken" || found.Err != nil || len(there()) != 2 || !strings.Contains(found.Message, "nothing is changed until spec.paused is false") {
		t.Errorf("while nothing may be changed: %+v, %v", found, there())
	}
}

// takes returns a stage whose controller runs, and what looks for what is withdrawn.
func takes(t *testing.T) (s *Stage, there func() []string) {
	t.Helper()
	s = newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(running(asItWas), leased(runs))...)
	allowing(s, everything, nothing)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion})
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	s.Client = mapped{mapper: mapper, WithWatch: s.Client.(client.WithWatch)}
	s.Applier = apply.New(s.Client, s.Live)
	for _, object := range s.Rendered.Stages["controller"] {
		object.SetLabels(rolledOut().Labels)
	}
	there = func() (found []string) {
		for name, object := range map[client.ObjectKey]client.Object{
			{Name: "clusterregistry:team:fleet:controller-health"}: &rbacv1.ClusterRoleBinding{}, s.Key("-controller"): &appsv1.Deployment{}} {
			if err := s.Live.Get(t.Context(), name, object); err == nil {
				found = append(found, name.Name)
			} else if !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		return found
	}
	if found := s.Run(t.Context()); !found.Complete() || len(there()) != 2 {
		t.Fatalf("%+v, %v", found, there())
	}
	return s, there
}
