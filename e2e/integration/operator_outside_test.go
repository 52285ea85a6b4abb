package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestOperatorOutside is about what others do, or don't, on a host of its own: it does not
// reach the servers. TestMatrixBackendDown, TestMatrixLoadBalancer and TestMatrixNotOwned of
// the e2e tests have the same on a cluster.
func TestOperatorOutside(t *testing.T) {
	t.Parallel()
	h := newOperatorHost(t)
	framework.InstallCertManagerAPI(t, h.kubectl)
	operator := framework.StartOperator(t, h.Host)
	framework.Together(t, h.cases(map[string]func(*testing.T, *site){"backend down": testBackendDown, "load balancer": testLoadBalancer, "a Deployment in the way": testDeploymentInTheWay}))
	operator.Stop()
	expectPermitted(t, h.audit)
}

// testBackendDown has a registry that was complete, and whose servers the host does not reach.
// After a minute, a condition and an event say what that does to the host. It stays registered
// while a server is ready, which only the host may not reach, and is registered again when one is.
// That its etcd is away as well, as after a power cut, keeps it registered no longer.
// Until then, another registry waits.
func testBackendDown(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Aggregated}")
	r := s.says("fleet", "APIServiceReady", "False", "NotAvailable", "v1alpha1.clusterregistry.k8s.io")
	before := r.DeepCopy()
	r.Status.History = []operatorv1alpha1.Transition{{Version: string(r.Spec.Version), State: operatorv1alpha1.TransitionCompleted, StartTime: metav1.Now()}}
	if err := s.Status().Patch(t.Context(), r, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	registered := func(want bool) {
		t.Helper()
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			name := version + "." + v1beta1.GroupName
			err := s.Get(t.Context(), client.ObjectKey{Name: name}, &apiregistrationv1.APIService{})
			if client.IgnoreNotFound(err) != nil || (err == nil) != want {
				t.Errorf("APIService %s is there: %t, want %t: %v", name, err == nil, want, err)
			}
		}
	}
	s.says("fleet", "APIServiceReady", "False", "BackendDown", "deletions of namespaces in the host cluster will hang")
	registered(true)
	s.eventually("an event to warn of it", func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := s.List(ctx, events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == operatorv1alpha1.ReasonBackendDown && event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "deletions of namespaces") {
				return nil
			}
		}
		return fmt.Errorf("none of %d does", len(events.Items))
	})
	// No server answers that starts while etcd is away, and nothing else is changed then.
	s.etcd.Kill(0)
	s.says("fleet", "EtcdReady", "False", operatorv1alpha1.ReasonExternalUnreachable)
	registered(true)
	s.kubelets.Away.Store(true)
	s.says("fleet", "APIServiceReady", "False", "BackendDown", "is created when a server answers")
	registered(false)
	s.etcd.Start(0)
	pause := func(paused bool) {
		s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = paused })
	}
	pause(true)
	s.kubelets.Away.Store(false)
	s.etcd, s.opens = framework.StartEtcd(t, 1), "etcd-second"
	s.apply("second", "{mode: Aggregated}")
	s.says("second", "APIServiceReady", "False", "GroupTaken", "is kept for ClusterRegistry "+s.namespace+"/fleet", "not registered at the moment")
	registered(false)
	s.gone(s.deleted("second"))
	pause(false)
	s.says("fleet", "APIServiceReady", "False", "NotAvailable", "v1alpha1.clusterregistry.k8s.io")
	registered(true)
	s.gone(s.deleted("fleet"))
}

// testLoadBalancer lets a load balancer's addresses come late, and names hosts later still:
// each time status, kubeconfig and certificate follow. The test is the load balancer.
func testLoadBalancer(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent, server: {service: {type: LoadBalancer}}}")
	s.says("fleet", "EndpointReady", "False", "AddressPending", "Service fleet-server of type LoadBalancer has no address yet")
	service := &corev1.Service{}
	s.get("fleet-server", service)
	const late, lateName = "192.0.2.10", "lb.example"
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: late}, {Hostname: lateName}}
	if err := s.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	s.leadsTo(late, late, lateName)
	s.change(func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.Server.Service.Hostnames = []operatorv1alpha1.Hostname{"registry.example", "other.example"}
	})
	s.leadsTo("registry.example", "registry.example", "other.example", late, lateName)
}

// leadsTo waits until the registry fleet is ready, its status and its kubeconfig lead to an
// address, and its certificate is for some names.
func (s *site) leadsTo(address string, names ...string) {
	s.t.Helper()
	s.eventually("clients to be sent to "+address, func(ctx context.Context) error {
		r, secret := &operatorv1alpha1.ClusterRegistry{}, &corev1.Secret{}
		if err := s.Get(ctx, s.key("fleet"), r); err != nil {
			return err
		}
		url := "https://" + address
		if r.Status.Endpoint == nil || r.Status.Endpoint.URL != url || r.Status.KubeconfigSecretRef == nil {
			return fmt.Errorf("they are sent to %+v: %s", r.Status.Endpoint, shown(r.Status.Conditions))
		}
		if err := s.Get(ctx, s.key(r.Status.KubeconfigSecretRef.Name), secret); err != nil {
			return err
		}
		if kubeconfig := string(secret.Data["kubeconfig"]); !strings.Contains(kubeconfig, url) {
			return fmt.Errorf("the kubeconfig does not lead there: %s", kubeconfig)
		}
		if err := s.Get(ctx, s.key("fleet-serving"), secret); err != nil {
			return err
		}
		leaf := certificates(s.t, secret.Data[corev1.TLSCertKey])[0]
		for _, name := range names {
			if err := leaf.VerifyHostname(name); err != nil {
				return err
			}
		}
		return nil
	})
	s.ready("fleet")
}

// testDeploymentInTheWay gives a registry a name that someone's Deployment stands in the way
// of. It stays as it is until its owner takes it away.
func testDeploymentInTheWay(t *testing.T, s *site) {
	labels := map[string]string{"app": "other"}
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server", Namespace: s.namespace, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other.example/other"}}}},
	}}
	framework.Create(t, s, other)
	s.apply("fleet", "{mode: Independent}")
	s.says("fleet", "ServerReady", "False", "NotOwned", "Deployment "+s.namespace+"/fleet-server is in the way", "delete it, or give the registry another name")
	now := &appsv1.Deployment{}
	s.get("fleet-server", now)
	if now.UID != other.UID || now.Generation != other.Generation || len(now.OwnerReferences) > 0 || now.Spec.Template.Spec.Containers[0].Image != other.Spec.Template.Spec.Containers[0].Image {
		t.Errorf("the Deployment of someone else is no longer as it was: %+v", now)
	}
	if err := s.Delete(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	s.ready("fleet")
}
