package integration

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// testUnreadable has a cluster in etcd that no one can decode: for those who don't see all there
// is none of its name, or it is taken, and an administrator is told what is wrong.
func (d *district) testUnreadable(etcd *framework.Etcd) {
	const name, absent = "broken", "xyz"
	ctx, bob, eve := d.t.Context(), d.servers["bob"][0], d.servers["eve"][0]
	put(d.t, etcd, key(name), "nonsense")
	for what, do := range map[string]func(s sets, name string) error{
		"get": func(s sets, name string) error {
			_, err := s.Clusters().Get(ctx, name, metav1.GetOptions{})
			return err
		},
		"patch": func(s sets, name string) error {
			_, err := s.Clusters().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		},
		"put into a set of others": func(s sets, name string) error {
			_, err := s.Clusters().Patch(ctx, name, types.ApplyPatchType, []byte(`{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","spec":{"clusterSet":"blue"}}`), metav1.PatchOptions{FieldManager: "x"})
			return err
		},
		"delete": func(s sets, name string) error { return s.Clusters().Delete(ctx, name, metav1.DeleteOptions{}) },
	} {
		broken, none := do(bob, name), do(bob, absent)
		if none == nil || broken == nil || strings.ReplaceAll(broken.Error(), name, absent) != none.Error() || apierrors.ReasonForError(broken) != apierrors.ReasonForError(none) {
			d.t.Errorf("%s: %v, and of an absent one %v", what, broken, none)
		}
		if err := do(eve, name); what != "put into a set of others" && (!apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "decod")) {
			d.t.Errorf("who sees all is told by %s: %v", what, err)
		}
	}
	framework.Eventually(d.t, "lists to fail", func(context.Context) error {
		if _, err := eve.Clusters().List(ctx, metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			return fmt.Errorf("who sees all is told by a list: %w", err)
		}
		return nil
	})
	_, listed := bob.Clusters().List(ctx, metav1.ListOptions{})
	_, created := bob.Clusters().Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: v1beta1.ClusterSpec{ClusterSet: "red", ID: "an-id"}}, metav1.CreateOptions{})
	for what, err := range map[string]error{"list": listed, "creation with an id": created} {
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "there are stored clusters that can't be decoded") || strings.Contains(err.Error(), name) {
			d.t.Errorf("bob is told by a %s: %v", what, err)
		}
	}
}
