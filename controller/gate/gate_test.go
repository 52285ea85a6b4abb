package gate

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
)

// TestAsk reads a namespace in each state, for a registry that may be elsewhere.
func TestAsk(t *testing.T) {
	labeled := func(value string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", Labels: map[string]string{"registry.clusterregistry.io/hub": value}}}
	}
	ending := labeled("registries")
	ending.DeletionTimestamp = &metav1.Time{}
	const label = "kubectl label namespace a registry.clusterregistry.io/hub=registries"
	for _, test := range []struct {
		reason    string
		namespace *corev1.Namespace
		err       error
		in        string
		open      bool
		says      string
	}{
		{reason: "labeled", namespace: labeled("registries"), in: "registries", open: true},
		{reason: "being deleted", namespace: ending, in: "registries", open: true},
		{reason: "no label", namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, in: "registries", says: label},
		{reason: "a registry of the name elsewhere", namespace: labeled("elsewhere"), in: "registries", says: label},
		{reason: "the label without a value", namespace: labeled(""), in: "registries", says: label},
		{reason: "the registry's own", namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, in: "a", open: true},
		{reason: "not there", in: "registries", says: "kubectl create namespace a; " + label},
		{reason: "no right", err: apierrors.NewForbidden(corev1.Resource("namespaces"), "a", nil), in: "registries", says: `may not read namespace "a"`},
		{reason: "no answer", err: errors.New("EOF"), in: "registries"},
	} {
		var objects []runtime.Object
		if test.namespace != nil {
			objects = append(objects, test.namespace)
		}
		host := fake.NewClientset(objects...)
		if test.err != nil {
			host.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
		}
		got, err := Gate{Namespaces: host.CoreV1().Namespaces(), Registry: "hub", Namespace: test.in}.Ask(t.Context(), "a")
		if unknown := test.reason == "no answer"; (err != nil) != unknown {
			t.Errorf("%s: %v", test.reason, err)
		}
		want := Answer{Closed: got.Closed}
		if test.open {
			want = Answer{UID: test.namespace.UID, Labels: test.namespace.Labels, Terminating: test.namespace == ending}
		}
		if !reflect.DeepEqual(got, want) || (got.Closed == "") != (test.says == "") || !strings.Contains(got.Closed, test.says) {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}
