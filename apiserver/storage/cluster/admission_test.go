package cluster

import (
	"context"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// webhook is admission that reads and changes a cluster in a version.
type webhook struct {
	*admission.Handler
	scheme *runtime.Scheme
	seen   *v1beta1.Cluster
	change func(*v1beta1.Cluster)
}

func (w *webhook) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	w.seen = &v1beta1.Cluster{}
	if err := w.scheme.Convert(a.GetObject(), w.seen, nil); err != nil {
		return err
	}
	changed := w.seen.DeepCopy()
	w.change(changed)
	return w.scheme.Convert(changed, a.GetObject(), nil)
}

// TestAdmissionSeesAndSetsAll lets a webhook of v1beta1 act on what a client of
// v1alpha1 writes: it sees what that client doesn't, and what it sets there stays.
func TestAdmissionSeesAndSetsAll(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	stored := &clusterregistry.Cluster{Remainder: `{"v2":{}}`, Spec: clusterregistry.ClusterSpec{
		DisplayName: "East", Endpoints: []clusterregistry.Endpoint{{Name: "main", URL: "https://east", ProxyURL: "http://proxy"}},
	}}
	form.FillV1alpha1(&stored.Spec)
	shown := &v1alpha1.Cluster{}
	if err := scheme.Convert(stored, shown, nil); err != nil {
		t.Fatal(err)
	}
	shown.Labels = map[string]string{"by": "client"}
	for _, test := range []struct {
		reason, resource string
		operation        admission.Operation
		want             string
	}{
		{"an update", "clusters", admission.Update, "East"},
		{"a creation, which has nothing to keep", "clusters", admission.Create, ""},
		{"another resource", "others", admission.Update, ""},
	} {
		written := &clusterregistry.Cluster{}
		if err := scheme.Convert(shown, written, nil); err != nil {
			t.Fatal(err)
		}
		hook := &webhook{Handler: admission.NewHandler(admission.Create, admission.Update), scheme: scheme, change: func(c *v1beta1.Cluster) {
			c.Spec.Taints = []v1beta1.Taint{{Key: "new", Effect: v1beta1.TaintNoSchedule}}
		}}
		resource := schema.GroupVersionResource{Group: clusterregistry.GroupName, Version: form.V1alpha1, Resource: test.resource}
		attributes := admission.NewAttributesRecord(written, stored, v1alpha1.SchemeGroupVersion.WithKind("Cluster"), "", "east", resource, "", test.operation, nil, false, nil)
		if err := Complete(hook).(admission.MutationInterface).Admit(t.Context(), attributes, nil); err != nil {
			t.Fatal(err)
		}
		if hook.seen.Spec.DisplayName != test.want {
			t.Errorf("%s: the webhook saw the name %q, want %q", test.reason, hook.seen.Spec.DisplayName, test.want)
		}
		if test.want == "" {
			continue
		}
		strategy{}.PrepareForUpdate(t.Context(), written, stored)
		want := stored.DeepCopy()
		want.Generation, want.Labels, want.Spec.Taints = 1, shown.Labels, []clusterregistry.Taint{{Key: "new", Effect: clusterregistry.TaintNoSchedule}}
		if !apiequality.Semantic.DeepEqual(written, want) {
			t.Errorf("%s: it is written as\n%s", test.reason, diff.Diff(want, written))
		}
	}
}

// TestAdmissionWithoutAnyOther makes sure that clusters are completed where
// nothing else is asked.
func TestAdmissionWithoutAnyOther(t *testing.T) {
	alone := Complete(nil)
	if !alone.Handles(admission.Update) || alone.Handles(admission.Delete) {
		t.Error("it handles something else than updates")
	}
	written, stored := &clusterregistry.Cluster{}, &clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{DisplayName: "East"}}
	attributes := admission.NewAttributesRecord(written, stored, schema.GroupVersionKind{}, "", "east", v1alpha1.SchemeGroupVersion.WithResource("clusters"), "status", admission.Update, nil, false, nil)
	if err := alone.(admission.MutationInterface).Admit(t.Context(), attributes, nil); err != nil || written.Spec.DisplayName != "East" {
		t.Errorf("got %v, %+v", err, written.Spec)
	}
	if err := alone.(admission.ValidationInterface).Validate(t.Context(), attributes, nil); err != nil {
		t.Error(err)
	}
}
