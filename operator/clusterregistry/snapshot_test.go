package clusterregistry

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
)

// TestSnapshotInTheWay is about a claim or a Job that is there and can't be
// changed: another Job may take the place of one, but what is on a claim is only
// for a person to give up.
func TestSnapshotInTheWay(t *testing.T) {
	for _, test := range []struct {
		kind, version string
		err           error
		reason, says  string
	}{
		{"Job", "batch/v1", apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "fleet-snapshot", nil), "Snapshot", "the Job of an earlier snapshot is removed"},
		{"PersistentVolumeClaim", "v1", apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "fleet-snapshots", nil), operatorv1alpha1.ReasonSnapshotFailed, "PersistentVolumeClaim fleet-snapshots"},
		{"PersistentVolumeClaim", "v1", apierrors.NewForbidden(schema.GroupResource{}, "fleet-snapshots", nil), operatorv1alpha1.ReasonSnapshotFailed, "refuses"},
		{"PersistentVolumeClaim", "v1", apierrors.NewServiceUnavailable("later"), operatorv1alpha1.ReasonInternalError, "later"},
	} {
		name := map[string]string{"Job": "fleet-snapshot", "PersistentVolumeClaim": "fleet-snapshots"}[test.kind]
		s := upgrading(t, "v0.2.0", "v0.3.0", "Snapshot", "")
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": test.version, "kind": test.kind, "metadata": map[string]any{"namespace": "team", "name": name}}}
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{apply.Reference(object)}
		r := reading(t, s)
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return test.err
			},
		})
		s.Applier = apply.New(r.Client, r.Live)
		s.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageSnapshot: {object}}
		v := r.advance(t.Context(), s)
		if v.Complete() || v.Reason != test.reason || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s, %v: %+v", test.kind, test.err, v)
		}
	}
}
