package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// export is what a controller has published in a namespace of its own, with the binding that is
// its owner.
type export struct {
	object  *corev1.ConfigMap
	binding *rbacv1.RoleBinding
}

// testExportsTakenBack ends exports while no controller runs, as none ever does here: one is removed, one
// namespace is closed, and then the registry is deleted. Each time, what was published there loses its
// owner, and nothing else does. That the host cluster then deletes it is Kubernetes' own: a bare host
// has no garbage collector.
func testExportsTakenBack(t *testing.T, s *site) {
	removed, closed, last := s.namespace+"-removed", s.namespace+"-closed", s.namespace+"-last"
	for _, name := range []string{removed, closed, last} {
		framework.Create(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.NamespaceLabel("fleet"): s.namespace}}})
	}
	const signIn = `signIn: [{provider: sso, hosts: ["*.example.com"], exec: {command: /sso}}]`
	s.apply("fleet", fmt.Sprintf("{version: v0.2.0, mode: Independent, controllers: {exports: [{format: ArgoCDSecret, namespace: %s, %s}, {format: ClusterProfile, namespace: %s}, {format: Kubeconfig, namespace: %s, %s}]}}", removed, signIn, closed, last, signIn))
	all := map[string]export{}
	for namespace, kinds := range map[string]string{removed: "secrets", closed: "cluster-profiles", last: "config-maps"} {
		all[namespace] = s.published(namespace, kinds)
	}

	s.change(func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.Controllers.Exports = r.Spec.Controllers.Exports[1:]
	})
	s.orphans(all, "an export is removed", removed)
	s.unlabel(client.ObjectKey{Name: closed}, &corev1.Namespace{})
	s.orphans(all, "a namespace is closed", removed, closed)
	s.gone(s.deleted("fleet"))
	s.orphans(all, "the registry is deleted", removed, closed, last)
}

// published publishes something as the controller does, once it may.
func (s *site) published(namespace, kinds string) export {
	s.t.Helper()
	out := export{binding: &rbacv1.RoleBinding{}}
	name := contract.ExportsBinding(s.namespace, "fleet", kinds)
	s.eventually("the controller to be bound in "+namespace, func(ctx context.Context) error {
		return s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, out.binding)
	})
	out.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "published", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding", Name: name, UID: out.binding.UID},
	}}}
	framework.Create(s.t, s, out.object)
	return out
}

// orphans waits until what was published in these namespaces has no owner any more, and expects that
// in the others it has.
func (s *site) orphans(all map[string]export, when string, in ...string) {
	s.t.Helper()
	gone := map[string]bool{}
	for _, namespace := range in {
		gone[namespace] = true
	}
	s.eventually(fmt.Sprintf("what goes when %s: %q", when, in), func(ctx context.Context) error {
		for namespace, is := range all {
			now := &rbacv1.RoleBinding{}
			err := s.Get(ctx, client.ObjectKeyFromObject(is.binding), now)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if owned := !apierrors.IsNotFound(err) && now.UID == is.object.OwnerReferences[0].UID; owned == gone[namespace] {
				return fmt.Errorf("in %s, it has its owner: %t", namespace, owned)
			}
		}
		return nil
	})
}
