package export

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

func TestGate(t *testing.T) {
	open := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"registry.clusterregistry.io/hub": "registries"}}}
	labeled := func(value string) *corev1.Namespace {
		ns := open.DeepCopy()
		ns.Labels["registry.clusterregistry.io/hub"] = value
		return ns
	}
	ending := open.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{}
	served := []*metav1.APIResourceList{{GroupVersion: "multicluster.x-k8s.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "clusterprofiles"}, {Name: "clusterprofiles/status"}}}}
	for _, test := range []struct {
		reason    string
		namespace *corev1.Namespace
		get       error
		served    []*metav1.APIResourceList
		own       bool
		private   bool
		want      verdict
	}{
		{reason: "open", namespace: open, served: served},
		{reason: "the registry's own", served: served, own: true},
		{reason: "the registry's own, with its keys", own: true, private: true, want: verdict{state: contract.FunctionRefused, message: "name another namespace"}},
		{reason: "not there", served: served, want: verdict{state: contract.FunctionRefused, message: "kubectl create namespace a; kubectl label namespace a registry.clusterregistry.io/hub=registries"}},
		{reason: "no label", namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, served: served, want: verdict{state: contract.FunctionRefused, message: "kubectl label namespace a registry.clusterregistry.io/hub=registries"}},
		{reason: "a registry of the name elsewhere", namespace: labeled("elsewhere"), served: served, want: verdict{state: contract.FunctionRefused, message: "kubectl label"}},
		{reason: "being deleted", namespace: ending, served: served, want: verdict{state: contract.FunctionFailing, message: "is being deleted"}},
		{reason: "no right", get: apierrors.NewForbidden(corev1.Resource("namespaces"), "a", nil), served: served, want: verdict{state: contract.FunctionRefused, message: "may not read namespace"}},
		{reason: "no answer", get: errors.New("EOF"), served: served, want: verdict{state: contract.FunctionFailing, message: "EOF", passing: true}},
		{reason: "no CRD", namespace: open, want: verdict{state: contract.FunctionFailing, message: "has no ClusterProfiles (multicluster.x-k8s.io/v1alpha1): install the CRD"}},
		{reason: "another resource", namespace: open, served: []*metav1.APIResourceList{{GroupVersion: "multicluster.x-k8s.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "serviceimports"}}}}, want: verdict{state: contract.FunctionFailing, message: "has no ClusterProfiles"}},
		{reason: "another version", namespace: open, served: []*metav1.APIResourceList{{GroupVersion: "multicluster.x-k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "clusterprofiles"}}}}, want: verdict{state: contract.FunctionFailing, message: "as v1beta1 alone"}},
	} {
		client := fake.NewClientset()
		if test.namespace != nil {
			client = fake.NewClientset(test.namespace)
		}
		if test.get != nil {
			client.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, test.get })
		}
		client.Discovery().(*discoveryfake.FakeDiscovery).Resources = test.served
		p := &publisher{Target: in("a"), kind: profiles.Kind(), Controller: &Controller{Config: Config{Source: source, Namespaces: client.CoreV1().Namespaces(), Discovery: client.Discovery(), Bindings: client.RbacV1()}}}
		if test.own {
			p.Namespace = source.Namespace
			p.kind.Private = test.private
		}
		got := p.closed(t.Context())
		if got == nil {
			got = &verdict{}
		}
		if got.state != test.want.state || got.passing != test.want.passing || !strings.Contains(got.message, test.want.message) {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}

// TestSum expects that the function is as its namespaces are, and names what is wrong in
// each.
func TestSum(t *testing.T) {
	var said []verdict
	var trouble error
	gap := ""
	c := &Controller{verdicts: map[string]verdict{}, Config: Config{
		Targets: []Target{in("a"), in("b")}, Unwatched: func() error { return trouble }, Gap: func() string { return gap },
		Say: func(state contract.FunctionState, message string) {
			said = append(said, verdict{state: state, message: message})
		},
	}}
	running := verdict{state: contract.FunctionRunning}
	for _, step := range []struct {
		namespace string
		is        verdict
		trouble   error
		want      verdict
	}{
		{"a", running, nil, verdict{state: contract.FunctionStarting, message: `Waiting for namespace "b".`}},
		{"b", verdict{state: contract.FunctionRefused, message: "B."}, nil, verdict{state: contract.FunctionRefused, message: "B."}},
		{"a", verdict{state: contract.FunctionFailing, message: "A."}, nil, verdict{state: contract.FunctionRefused, message: "A.\nB."}},
		{"b", running, nil, verdict{state: contract.FunctionFailing, message: "A."}},
		{"a", running, errors.New("EOF"), verdict{state: contract.FunctionFailing, message: "Clusters of the registry can't be watched, so that changes of their entries are not published, and nothing is deleted: EOF."}},
		{"a", running, nil, running},
	} {
		trouble = step.trouble
		c.report(in(step.namespace), step.is)
		c.report(in(step.namespace), step.is)
		if len(said) != 1 || said[0] != step.want {
			t.Errorf("%+v: said %+v", step, said)
		}
		said = nil
	}
	gap = "Ranges are missing."
	for _, held := range []string{"", "Held.\n"} {
		said = nil
		want := verdict{state: contract.FunctionRangesUnknown, message: held + gap}
		if held != "" {
			want.state = contract.FunctionRunning
		}
		c.report(in("a"), verdict{state: contract.FunctionRunning, message: strings.TrimSpace(held)})
		if len(said) != 1 || said[0] != want {
			t.Errorf("ranges that are not known: said %+v, want %+v", said, want)
		}
	}
}

// in is a target of profiles.
func in(namespace string) Target {
	return Target{Target: format.Target{Namespace: namespace}, Format: profiles}
}
