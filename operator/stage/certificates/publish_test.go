package certificates

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// TestAnnounce has the host cluster trust a new CA before the servers show what it signed.
func TestAnnounce(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for _, test := range []struct {
		reason     string
		authority  trust.Authority
		registered client.Object
		frozen     bool
		want       string
	}{
		{"the CA was replaced", trust.Authority{Current: now.PEM, Published: old.PEM}, operandtest.APIService("fleet", old.PEM), false, "both"},
		{"nothing may be changed", trust.Authority{Current: now.PEM, Published: old.PEM}, operandtest.APIService("fleet", old.PEM), true, string(old.PEM)},
		{"it is published already", trust.Authority{Current: now.PEM, Published: join(now.PEM, old.PEM)}, operandtest.APIService("fleet", old.PEM), false, string(old.PEM)},
		{"there is no other one", trust.Authority{Published: old.PEM}, operandtest.APIService("fleet", old.PEM), false, string(old.PEM)},
		{"nothing is published yet", trust.Authority{Current: now.PEM}, operandtest.APIService("fleet", old.PEM), false, string(old.PEM)},
		{"the APIService is another's", trust.Authority{Current: now.PEM, Published: old.PEM}, operandtest.APIService("other", old.PEM), false, string(old.PEM)},
		{"the APIService was deleted", trust.Authority{Current: now.PEM, Published: old.PEM}, nil, false, ""},
	} {
		var objects []client.Object
		if test.registered != nil {
			objects = append(objects, test.registered)
		}
		s := stageOf(operandtest.New(t, operandtest.InstalledAggregated, objects...))
		s.Authorities.Serving = test.authority
		service, err := operand.Unstructured(operandtest.APIService("fleet", []byte("both")))
		if err != nil {
			t.Fatal(err)
		}
		service.SetGroupVersionKind(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"))
		s.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageEndpoint: {service}}
		if test.frozen {
			s.Freeze("spec.paused is false")
		}
		if v := s.announce(t.Context()); !v.Complete() {
			t.Errorf("%s: %+v", test.reason, v)
		}
		published := &apiregistrationv1.APIService{}
		if err := s.Live.Get(t.Context(), client.ObjectKeyFromObject(service), published); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if string(published.Spec.CABundle) != test.want {
			t.Errorf("%s: published is %s", test.reason, published.Spec.CABundle)
		}
	}
}

// TestAnnounceToClients gives clients of an independent registry a new CA by the kubeconfig,
// which is written as soon as there is an administrator.
func TestAnnounceToClients(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for _, administrator := range []bool{true, false} {
		o := operandtest.New(t, "{spec: {mode: Independent}, status: {endpoint: {url: 'https://a'}}}")
		objects := []client.Object{o.Registry.DeepCopy()}
		if administrator {
			admin := operandtest.Secret("fleet-admin", []byte("c"))
			admin.Data[corev1.TLSPrivateKeyKey] = []byte("k")
			objects = append(objects, admin)
		}
		o.HostCluster = operandtest.Host(t, objects...)
		s, both := stageOf(o), string(join(now.PEM, old.PEM))
		s.Authorities.Serving = trust.Authority{Current: now.PEM, Published: old.PEM}
		if v := s.announce(t.Context()); !v.Complete() || string(s.Registry.Status.Endpoint.CABundle) != both {
			t.Errorf("%+v, the status has\n%s", v, s.Registry.Status.Endpoint.CABundle)
		}
		content, err := s.SecretValue(t.Context(), "fleet-kubeconfig", "kubeconfig")
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(content)
		if err != nil {
			t.Fatal(err)
		}
		if cluster := config.Clusters["fleet"]; (cluster != nil) != administrator || cluster != nil && (string(cluster.CertificateAuthorityData) != both || cluster.Server != "https://a") {
			t.Errorf("with an administrator: %t: the kubeconfig is %s", administrator, content)
		}
	}
}

// TestRetire publishes the previous CA until every server shows what the present one signed.
func TestRetire(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	server := func(name string, phase corev1.PodPhase, ready corev1.ConditionStatus) client.Object {
		_, pod := operandtest.Servers(1)
		pod.Name = name
		pod.Status = corev1.PodStatus{Phase: phase, PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
		return pod
	}
	first, second := server("a", corev1.PodRunning, "True"), server("b", corev1.PodRunning, "True")
	starting, evicted := server("b", corev1.PodRunning, "False"), server("b", corev1.PodFailed, "False")
	only := generation.InUse{Signing: 1}
	for _, test := range []struct {
		reason  string
		current []byte
		inUse   generation.InUse
		pods    []client.Object
		err     error
		retired bool
	}{
		{"every server shows it", now.PEM, only, []client.Object{first, second}, nil, true},
		{"one was evicted, and will not show it", now.PEM, only, []client.Object{first, evicted}, nil, true},
		{"one does not answer yet", now.PEM, only, []client.Object{first, starting}, nil, false},
		{"a server shows the previous one's", now.PEM, only, []client.Object{first, second}, errors.New("signed by an unknown authority"), false},
		{"there is no server", now.PEM, only, nil, nil, false},
		{"there is no CA at the moment", nil, only, []client.Object{first, second}, nil, false},
		{"the next generation is published, too, which no server shows", now.PEM, generation.InUse{Signing: 1, Also: 2}, []client.Object{first, second}, nil, false},
	} {
		var objects []client.Object
		for _, pod := range test.pods {
			objects = append(objects, pod.DeepCopyObject().(client.Object))
		}
		access := servers.Access{Objects: operandtest.New(t, operandtest.InstalledAggregated, objects...)}
		access.Ask = func(_ context.Context, server health.Server) (string, error) {
			if string(server.CAs) != string(now.PEM) || server.Name != "fleet-server.team.svc" {
				t.Errorf("%s: asked is %+v", test.reason, server)
			}
			return "v0.1.0", test.err
		}
		serving := trust.Authority{Current: test.current, Published: old.PEM, InUse: test.inUse}
		serving, err := Retire(t.Context(), access, serving)
		if err != nil {
			t.Fatal(err)
		}
		if retired := serving.Published == nil; retired != test.retired {
			t.Errorf("%s: retired is %t", test.reason, retired)
		}
	}
}

// TestRetireAfterTheFeed publishes the previous CA until the controller shows what the present one signed,
// too, to those who ask its feed.
func TestRetireAfterTheFeed(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for leaf, want := range map[string]bool{string(old.Leaf()): false, string(now.Leaf()): true} {
		_, pod := operandtest.Servers(1)
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}}}
		access := servers.Access{Objects: operandtest.New(t, operandtest.InstalledAggregated, pod, operandtest.Secret("fleet-controller", []byte(leaf)))}
		access.Registry.Spec.Controllers = &operatorv1alpha1.Controllers{Feed: &operatorv1alpha1.Feed{}}
		access.Ask = func(context.Context, health.Server) (string, error) { return "v0.1.0", nil }
		serving, err := Retire(t.Context(), access, trust.Authority{Current: now.PEM, Published: old.PEM, InUse: generation.InUse{Signing: 1}})
		if err != nil || (serving.Published == nil) != want {
			t.Errorf("retired is %t, want %t: %v", serving.Published == nil, want, err)
		}
	}
}
