package clusterregistry

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	hostversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// TestReleasedHoweverEarlyItEnds unregisters a registry whose servers are gone and whose reconcile
// ends before its stages, or before it could be observed, and withdraws its controller where another
// one has its place.
func TestReleasedHoweverEarlyItEnds(t *testing.T) {
	for reason, test := range map[string]struct {
		spec   string
		broken func(*unstructured.Unstructured) error
		// unread is true where the namespace can't be read, and forbidden where the registry may no
		// longer be a part of the host cluster's API.
		unread, forbidden, stays bool
		// taken is true where another registry has its place, and says is what it says then.
		taken bool
		says  string
	}{
		"its release is not known":                {spec: "version: v9.0.0"},
		"it is paused":                            {spec: "version: v9.0.0, paused: true", stays: true},
		"its namespace can't be read":             {spec: "version: v0.1.0", unread: true},
		"it may not be aggregated":                {spec: "version: v9.0.0", forbidden: true},
		"another one has its place":               {spec: "version: v9.0.0", forbidden: true, stays: true, taken: true, says: "from ClusterRegistry team/other"},
		"another one has its place, it is paused": {spec: "version: v9.0.0, paused: true", stays: true, taken: true, says: "from ClusterRegistry team/other"},
		"another one has it, and no namespace":    {spec: "version: v0.1.0", unread: true, stays: true, taken: true},
		"it can't be decoded": {spec: "version: v0.1.0", broken: func(o *unstructured.Unstructured) error {
			return unstructured.SetNestedField(o.Object, "many", "spec", "etcd", "replicas")
		}},
		"it is paused, and can't be decoded": {spec: "version: v0.1.0, paused: true", stays: true, broken: func(o *unstructured.Unstructured) error {
			return unstructured.SetNestedField(o.Object, "many", "spec", "etcd", "replicas")
		}},
	} {
		ca := trusttest.NewCA(t, time.Now().Add(time.Hour)).PEM
		registry := look(t, "{spec: {mode: Aggregated, etcd: {replicas: 1}, "+test.spec+"}, status: {version: v9.0.0, inventory: [{group: apiregistration.k8s.io, kind: APIService, name: v1alpha1.clusterregistry.k8s.io}, {group: apps, kind: Deployment, namespace: team, name: fleet-controller}]"+complete+"}}").Registry
		registry.Finalizers = []string{operatorv1alpha1.Finalizer}
		service := operandtest.APIService(map[bool]string{false: "fleet", true: "other"}[test.taken], ca)
		acting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-controller", Labels: operandtest.APIService("fleet", ca).Labels}}
		service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: "False", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
		r := reading(t, nil, registry, service, acting, operandtest.Secret("fleet-serving-ca", ca), operandtest.Secret("fleet-etcd-ca", ca))
		host := r.Client.(client.WithWatch)
		r.Live = interceptor.NewClient(host, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			_, typed := object.(*operatorv1alpha1.ClusterRegistry)
			tree, is := object.(*unstructured.Unstructured)
			switch {
			case test.unread && key.Namespace == "":
				if _, is := object.(*metav1.PartialObjectMetadata); is && object.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
					return apierrors.NewInternalError(errors.New("no answer"))
				}
			case test.broken != nil && typed:
				return errors.New("can't be decoded")
			}
			if err := c.Get(ctx, key, object, options...); err != nil || test.broken == nil || !is || tree.GetKind() != "ClusterRegistry" {
				return err
			}
			return test.broken(tree)
		}})
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apiregistrationv1.SchemeGroupVersion, appsv1.SchemeGroupVersion})
		mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
		mapper.Add(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), meta.RESTScopeRoot)
		r.Applier = apply.New(operandtest.Mapped{Client: host, Kinds: mapper}, r.Live)
		r.Namespaces, r.Host = permission.Namespaces{Aggregated: []string{permission.AllNamespaces}}, operandtest.Serving(t, false)
		if test.forbidden {
			r.Namespaces = permission.Namespaces{}
		}
		r.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &hostversion.Info{GitVersion: "v1.37.1"}}
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(registry)})
		if (err != nil) != test.unread {
			t.Errorf("%s: %v", reason, err)
		}
		if err := host.Get(t.Context(), client.ObjectKeyFromObject(service), service); apierrors.IsNotFound(err) == test.stays {
			t.Errorf("%s: the APIService: %v", reason, err)
		}
		if err := host.Get(t.Context(), client.ObjectKeyFromObject(acting), acting); apierrors.IsNotFound(err) != (test.taken && !strings.Contains(test.spec, "paused")) {
			t.Errorf("%s: the controller: %v", reason, err)
		}
		now := &operatorv1alpha1.ClusterRegistry{}
		if err := host.Get(t.Context(), client.ObjectKeyFromObject(registry), now); err != nil {
			t.Fatal(err)
		}
		says := map[bool]string{false: "no longer registered", true: cmp.Or(test.says, "stays registered: nothing is changed until spec.paused is false")}[test.stays]
		condition := meta.FindStatusCondition(now.Status.Conditions, operatorv1alpha1.ConditionAPIServiceReady)
		if !test.unread && (condition == nil || condition.Reason == operatorv1alpha1.ReasonUndecodable || !strings.Contains(condition.Message, says)) {
			t.Errorf("%s: it says %+v", reason, condition)
		}
	}
}
