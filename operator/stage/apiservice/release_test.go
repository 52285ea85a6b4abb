package apiservice

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
)

// mapped is a client of a host cluster that serves the kinds of a mapper.
type mapped struct {
	client.Client
	mapper meta.RESTMapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// deleting has the registry's writer delete APIServices.
func deleting(o *operand.Objects) *operand.Objects {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apiregistrationv1.SchemeGroupVersion})
	mapper.Add(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), meta.RESTScopeRoot)
	o.Client = mapped{o.Client, mapper}
	o.Applier = apply.New(o.Client, o.Live)
	return o
}

// refusing is a client of a host cluster that refuses to delete.
type refusing struct{ client.Client }

func (refusing) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errors.New("a policy forbids it")
}

// unapplying is a client of a host cluster that lets nothing be applied.
type unapplying struct{ client.Client }

func (unapplying) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errors.New("a webhook is away")
}

// unlisting is a client whose cache has no pods.
type unlisting struct{ client.Client }

func (c unlisting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.PodList); is {
		return errors.New("no pods")
	}
	return c.Client.List(ctx, list, options...)
}

// running has a server of team/fleet be ready.
func running(t *testing.T, o *operand.Objects) {
	t.Helper()
	_, pod := operandtest.Servers(1)
	pod.Status = corev1.PodStatus{PodIP: "127.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := o.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// silent is a registry of which no server is ready.
var silent = pass.Servers{Asked: true}

// allowed has each registry be a part of the host cluster's API.
func allowed(string) bool { return true }

// outage is a host cluster that has not reached the servers of team/fleet for so long, by the
// given versions of the API; both are rendered.
func outage(t *testing.T, registry string, status apiregistrationv1.ConditionStatus, since time.Duration, versions ...string) *operand.Objects {
	t.Helper()
	of := func(version string) *apiregistrationv1.APIService {
		out := operandtest.APIService("fleet", []byte("CA"))
		out.Name, out.Spec.Version = version+"."+Group, version
		return out
	}
	var objects []client.Object
	for _, version := range versions {
		there := of(version)
		if status != "" {
			there.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
		}
		objects = append(objects, there)
	}
	o := deleting(operandtest.New(t, registry, objects...))
	o.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		service, err := operand.Unstructured(of(version))
		if err != nil {
			t.Fatal(err)
		}
		service.SetAPIVersion("apiregistration.k8s.io/v1")
		service.SetKind("APIService")
		o.Rendered.Stages[render.StageEndpoint] = append(o.Rendered.Stages[render.StageEndpoint], service)
	}
	if err := o.Client.Create(t.Context(), o.Registry.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	return o
}

// left names the versions that are registered.
func left(t *testing.T, o *operand.Objects) string {
	t.Helper()
	list := &apiregistrationv1.APIServiceList{}
	if err := o.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, strings.TrimSuffix(list.Items[i].Name, "."+Group))
	}
	return strings.Join(out, " ")
}

// TestReleased unregisters a registry without a backend, and for no other reason.
func TestReleased(t *testing.T) {
	const both, begun = "v1alpha1 v1beta1", "{spec: {mode: Aggregated}, status: {history: [{version: v0.1.0, state: Progressing, startTime: null}]}}"
	for _, test := range []struct {
		reason   string
		registry string
		status   apiregistrationv1.ConditionStatus
		since    time.Duration
		there    string
		servers  pass.Servers
		change   func(*Stage)
		left     string
		says     string
	}{
		{reason: "no one answers", status: "False", since: 2 * time.Minute, servers: silent, says: "no longer registered"},
		{reason: "the host cluster does not know", status: "Unknown", since: 2 * time.Minute, servers: silent, says: "no longer registered"},
		{reason: "it was never complete", registry: begun, status: "False", since: 2 * time.Minute, servers: silent, says: "no longer registered"},
		{reason: "one version was deleted already", status: "False", since: 2 * time.Minute, there: "v1beta1", servers: silent, says: "no longer registered"},
		{reason: "the servers were not asked, and there is none", status: "False", since: 2 * time.Minute, says: "no longer registered"},
		{reason: "the servers were not asked, and one is ready", status: "False", since: 2 * time.Minute, change: func(s *Stage) { running(t, s.Objects) }, left: both, says: "hang"},
		{reason: "the servers were not asked, and can't be listed", status: "False", since: 2 * time.Minute, change: func(s *Stage) { s.Client = unlisting{s.Client} }, left: both, says: "it is not known which servers run: no pods"},
		{reason: "a server is ready, and does not answer the operator", status: "False", since: 2 * time.Minute, servers: pass.Servers{Asked: true, Ready: 1}, left: both, says: "hang"},
		{reason: "a server answers the operator", status: "False", since: 2 * time.Minute, servers: pass.Servers{Asked: true, Ready: 1, Answering: 1}, left: both, says: "hang"},
		{reason: "a server answers the host cluster", status: "True", since: 2 * time.Minute, servers: silent, left: both},
		{reason: "just now one has answered", status: "False", since: 50 * time.Second, servers: silent, left: both, says: "does not reach the servers"},
		{reason: "the host cluster has not looked", servers: silent, left: both, says: "has not checked"},
		{reason: "it is paused", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) { s.Freeze("spec.paused is false") }, left: both, says: "stays registered: nothing is changed until spec.paused is false"},
		{reason: "etcd is away, for which all else stays as it is", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) {
			s.FreezeBy(operatorv1alpha1.ConditionEtcdReady, "this is resolved: EtcdReady: it does not answer")
		}, says: "no longer registered"},
		{reason: "it is not known whom clients are to trust", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) {
			s.FreezeBy(operatorv1alpha1.ConditionCertificatesReady, "this is resolved: CertificatesReady: CAMissing")
			s.FreezeBy(operatorv1alpha1.ConditionEtcdReady, "this is resolved: EtcdReady: it does not answer")
		}, left: both, says: "stays registered: nothing is changed until this is resolved: CertificatesReady"},
		{reason: "the CA of the servers is published nowhere else", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) { s.Replaced = true }, left: both, says: "stays registered: its serving CA is being replaced"},
		{reason: "a CRD waits for its place", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) {
			definition := informers.MetadataOf(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
			definition.Name = "clusters." + Group
			if err := s.Client.Create(t.Context(), definition); err != nil {
				t.Fatal(err)
			}
		}, left: both, says: "would be served in its place; delete it"},
		{reason: "nothing is applied, as while a webhook is away", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) {
			s.Applier = apply.New(unapplying{s.Client}, s.Live)
		}, says: "no longer registered"},
		{reason: "finalizers keep it", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) {
			service := &apiregistrationv1.APIService{}
			if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "v1alpha1." + Group}, service); err != nil {
				t.Fatal(err)
			}
			service.Finalizers = []string{"team/holds"}
			if err := s.Client.Update(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			if err := s.Client.Delete(t.Context(), service); err != nil {
				t.Fatal(err)
			}
		}, left: "v1alpha1", says: "v1alpha1." + Group + " is deleted, and its finalizers team/holds keep it"},
		{reason: "it is not deleted", status: "False", since: time.Hour, servers: silent, change: func(s *Stage) {
			s.Applier = apply.New(refusing{s.Client}, s.Live)
		}, left: both, says: "stays registered: "},
	} {
		if test.registry == "" {
			test.registry = operandtest.InstalledAggregated
		}
		if test.there == "" {
			test.there = both
		}
		o := outage(t, test.registry, test.status, test.since, strings.Fields(test.there)...)
		stage := Stage{Objects: o, MayAggregate: allowed, Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}, Servers: test.servers}
		if test.change != nil {
			test.change(&stage)
		}
		found := stage.Run(t.Context())
		if got := left(t, o); got != test.left || !strings.Contains(found.Message, test.says) || (found.Reason == operatorv1alpha1.ReasonBackendDown) != (test.since > Grace && test.status != "True") {
			t.Errorf("%s: %q is registered: %+v", test.reason, got, found)
		}
		deleted := strings.TrimSpace(strings.TrimPrefix(test.there, test.left))
		want := min(1, len(deleted))
		if got := o.Events.(*events.FakeRecorder).Events; len(got) != want || want > 0 && !strings.Contains(<-got, strings.ReplaceAll(deleted, " ", "."+Group+", ")+"."+Group+", which are created again when a server answers") {
			t.Errorf("%s: not %d events of it", test.reason, want)
		}
	}
}

// TestRepairedFirst repairs what leads the host cluster elsewhere, whatever keeps the registry
// registered.
func TestRepairedFirst(t *testing.T) {
	o := outage(t, operandtest.InstalledAggregated, "False", time.Hour, "v1alpha1", "v1beta1")
	changed := &apiregistrationv1.APIService{}
	changed.Name = "v1alpha1." + Group
	if err := o.Client.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.CABundle = []byte("of someone else")
	if err := o.Client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	stage := Stage{Objects: o, MayAggregate: allowed, Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}, Replaced: true}
	found := stage.Run(t.Context())
	if err := o.Client.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil || string(changed.Spec.CABundle) != "CA" || !strings.Contains(found.Message, "stays registered") {
		t.Errorf("%s, %v: %+v", changed.Spec.CABundle, err, found)
	}
}

// TestRegisteredAgain registers a registry that was released, once a server answers.
func TestRegisteredAgain(t *testing.T) {
	o := outage(t, operandtest.InstalledAggregated, "", 0)
	stage := Stage{Objects: o, MayAggregate: allowed, Servers: silent}
	if found := stage.Run(t.Context()); found.Reason != operatorv1alpha1.ReasonBackendDown || !strings.Contains(found.Message, "is created when a server answers") || left(t, o) != "" {
		t.Errorf("%+v", found)
	}
	stage.Servers.Answering = 1
	stage.Run(t.Context())
	if got := left(t, o); got != "v1alpha1 v1beta1" {
		t.Errorf("a server answers, and registered is %q", got)
	}
	o = outage(t, operandtest.InstalledAggregated, "", 0)
	o.FreezeBy(operatorv1alpha1.ConditionEtcdReady, "this is resolved: EtcdReady: it is another etcd")
	stage = Stage{Objects: o, MayAggregate: allowed, Servers: pass.Servers{Asked: true, Ready: 1, Answering: 1}}
	stage.Run(t.Context())
	if got := left(t, o); got != "" {
		t.Errorf("it may be another etcd that is back, and registered is %q", got)
	}
	o = outage(t, operandtest.InstalledAggregated, "", 0)
	o.Freeze("spec.paused is false")
	stage = Stage{Objects: o, MayAggregate: allowed, Servers: pass.Servers{Asked: true, Ready: 1, Answering: 1}}
	if found := stage.Run(t.Context()); !strings.Contains(found.Message, "nothing is made until spec.paused is false") {
		t.Errorf("%+v", found)
	}
	o = outage(t, operandtest.InstalledAggregated, "", 0) // not read-only, as within a phase of an upgrade
	stage = Stage{Objects: o, MayAggregate: func(string) bool { return false }, Servers: pass.Servers{Asked: true, Ready: 1, Answering: 1}}
	if found := stage.Run(t.Context()); found.Reason != operatorv1alpha1.ReasonAggregationNotAllowed || left(t, o) != "" {
		t.Errorf("it may no longer be aggregated: %+v, and registered is %q", found, left(t, o))
	}
}

// TestPlaceIsKept has a registry wait while another one, which was complete, is not registered.
func TestPlaceIsKept(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*operatorv1alpha1.ClusterRegistry)
		waits  bool
	}{
		{"none of its servers runs", func(*operatorv1alpha1.ClusterRegistry) {}, true},
		{"it is being recovered, and its inventory has no APIServices", func(r *operatorv1alpha1.ClusterRegistry) { r.Status.Inventory = nil }, true},
		{"it was never complete", func(r *operatorv1alpha1.ClusterRegistry) { r.Status.History = nil }, false},
		{"it may no longer be aggregated", func(r *operatorv1alpha1.ClusterRegistry) { r.Namespace = "closed" }, false},
		{"it is independent", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Mode = operatorv1alpha1.ModeIndependent }, false},
	} {
		o := outage(t, "{spec: {mode: Aggregated}}", "", 0)
		other := operandtest.New(t, operandtest.InstalledAggregated).Registry.DeepCopy()
		other.Name, other.UID, other.ResourceVersion = "other", "other", ""
		other.Status.Inventory = []operatorv1alpha1.ObjectReference{{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: "v1alpha1." + Group}, {Group: apiregistrationv1.GroupName, Kind: "APIService", Name: "v1beta1." + Group}}
		test.change(other)
		// The operator's cache has no more of it than this.
		cached, err := informers.Options(nil).DefaultTransform(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Client.Create(t.Context(), cached.(client.Object)); err != nil {
			t.Fatal(err)
		}
		stage := Stage{Objects: o, MayAggregate: func(namespace string) bool { return namespace != "closed" }, Servers: pass.Servers{Asked: true, Ready: 2, Answering: 2}}
		found := stage.Run(t.Context())
		if waits := found.Reason == operatorv1alpha1.ReasonGroupTaken && strings.Contains(found.TakenBy, "team/other"); waits != test.waits || waits == (left(t, o) != "") {
			t.Errorf("%s: %+v", test.reason, found)
		}
	}
}
