package clusterregistry

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestUnreadNamespace has pods keep their users where the namespace can't be read, which says
// whether the platform gives them. The cache, which has no templates, does not know it.
func TestUnreadNamespace(t *testing.T) {
	const spec = "{spec: {mode: Aggregated, version: v0.1.0, etcd: {replicas: 1}}}"
	template := func(user, group, volumes *int64) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: user, RunAsGroup: group, FSGroup: volumes}}}
	}
	ours, theirs := template(new(int64(65532)), new(int64(65532)), new(int64(65532))), template(nil, nil, nil)
	partly, whole := template(nil, nil, new(int64(7))), template(new(int64(5)), new(int64(6)), new(int64(7)))
	for reason, test := range map[string]struct {
		servers, members *corev1.PodTemplateSpec
		gives            bool
	}{
		"nothing runs":                    {nil, nil, false},
		"users of the manifests":          {&ours, &ours, false},
		"users of the platform":           {&theirs, &theirs, true},
		"the spec names some of servers":  {&partly, &theirs, true},
		"the spec names all of servers":   {&whole, &theirs, true},
		"members alone, of the platform":  {nil, &theirs, true},
		"members alone, of the manifests": {nil, &ours, false},
	} {
		s := look(t, spec)
		meta := func(suffix string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: "team", Name: "fleet" + suffix}
		}
		var live, cached []client.Object
		if test.servers != nil {
			live, cached = append(live, &appsv1.Deployment{ObjectMeta: meta("-server"), Spec: appsv1.DeploymentSpec{Template: *test.servers}}), append(cached, &appsv1.Deployment{ObjectMeta: meta("-server")})
		}
		if test.members != nil {
			live, cached = append(live, &appsv1.StatefulSet{ObjectMeta: meta("-etcd"), Spec: appsv1.StatefulSetSpec{Template: *test.members}}), append(cached, &appsv1.StatefulSet{ObjectMeta: meta("-etcd")})
		}
		r := reading(t, s, live...)
		r.Client = operandtest.Host(t, cached...).Client
		r.Live = interceptor.NewClient(r.Live.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if key.Namespace == "" {
				return apierrors.NewForbidden(corev1.Resource("namespaces"), key.Name, nil)
			}
			return c.Get(ctx, key, into, options...)
		}})
		if err := r.readNamespace(t.Context(), s); err != nil || s.Terminating || (s.uidRange != "") != test.gives {
			t.Errorf("%s: %q, %v", reason, s.uidRange, err)
		}
	}
}
