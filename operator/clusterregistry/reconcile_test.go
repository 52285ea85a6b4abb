package clusterregistry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// TestNotRendered has manifests that don't fit be the release's fault, not that of the
// certificates.
func TestNotRendered(t *testing.T) {
	s := look(t, "{spec: {version: v0.1.0, mode: Aggregated}}")
	s.Rendered = nil
	r := reading(t, s)
	r.Aggregated = []string{permission.AllNamespaces}
	r.Releases = slices.Clone(released)
	r.Releases[0].Layout = "none"
	r.run(t.Context(), s)
	if v := s.found[operatorv1alpha1.ConditionVersionSupported]; v.Err == nil || !strings.Contains(v.Message, "the objects of v0.1.0: ") || len(s.found) != 1 {
		t.Errorf("%+v", s.found)
	}
}

// TestNotPruned has an object that can't be deleted be what the registry is progressing
// with; no stage is to blame, and an upgrade waits.
func TestNotPruned(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	for _, upgrades := range []bool{false, true} {
		s := look(t, "{spec: {mode: Aggregated}, status: {inventory: [{kind: ConfigMap, namespace: team, name: old}]}}")
		if upgrades {
			s = upgrading(t, "v0.1.0", "v0.2.0", "Preflight", "")
			s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{{Kind: "ConfigMap", Namespace: "team", Name: "old"}}
			if v := s.plan(released); !v.Complete() {
				t.Fatal(v)
			}
		}
		r := reading(t, s)
		refusing := fake.NewClientBuilder().WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		}}).Build()
		s.Applier = apply.New(refusing, refusing)
		if v := r.proceed(t.Context(), s); v.State != verdict.Blocked || v.Err == nil || !strings.Contains(v.Message, "no longer part of the registry: ") || !strings.HasSuffix(v.Message, "forbidden") {
			t.Errorf("an upgrade: %t: %+v", upgrades, v)
		}
		s.Freeze("spec.paused is false")
		if v := r.proceed(t.Context(), s); v.Err != nil || v.Complete() != !upgrades {
			t.Errorf("read-only, an upgrade: %t: %+v", upgrades, v)
		}
	}
}

// TestNothingEmptyIsPublished applies no object that would publish an empty bundle.
func TestNothingEmptyIsPublished(t *testing.T) {
	s := look(t, "{spec: {version: v0.3.0, mode: Aggregated}}")
	s.Release, s.Authorities.Etcd.Current = version.WithMembers(released, "")[2], []byte("CA")
	r := reading(t, s, s.Registry.DeepCopy())
	var err error
	if s.Rendered, err = render.Render(s.input(render.Environment{})); err != nil {
		t.Fatal(err)
	}
	for _, object := range s.Rendered.Stages[render.StageEndpoint] {
		if err := s.Apply(t.Context(), object); err == nil || !strings.Contains(err.Error(), "would publish an empty bundle of CA certificates (serving-ca)") {
			t.Errorf("%s: %v", object.GetName(), err)
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(object), live); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s is there: %v", object.GetName(), err)
		}
	}
	if len(s.Rendered.Stages[render.StageEndpoint]) == 0 {
		t.Error("nothing would be published")
	}
}
