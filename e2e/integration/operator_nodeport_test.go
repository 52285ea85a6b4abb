package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// testNodePort deletes the Service of a registry for which the host has chosen a node
// port: what takes its place has that port again, or nothing does.
func testNodePort(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent, server: {service: {type: NodePort, hostnames: [registry.example]}}}")
	url := s.ready("fleet").Status.Endpoint.URL
	before := &corev1.Service{}
	s.get("fleet-server", before)
	port := before.Spec.Ports[0].NodePort
	if want := fmt.Sprintf("https://registry.example:%d", port); url != want {
		t.Fatalf("clients are sent to %s, not to %s", url, want)
	}
	for range 3 {
		s.serviceDeleted()
		s.serviceBack(before)
	}

	// In a paused registry, somebody takes the port.
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = true })
	s.says("fleet", "Progressing", "False", "Paused")
	s.serviceDeleted()
	s.says("fleet", "EndpointReady", "False", "AddressPending")
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: s.namespace}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
	framework.Create(t, s, other)
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = false })
	s.says("fleet", "EndpointReady", "False", "NodePortRefused", fmt.Sprintf("node port %d", port), "already allocated", "spec.server.service.nodePort")
	s.holds("fleet", "-Service/fleet-server")
	s.says("fleet", "CertificatesReady", "True", "Ready")
	if err := s.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.serviceBack(before)

	// The Service is the record, too.
	r := s.ready("fleet")
	lost := r.DeepCopy()
	lost.Status.Endpoint = nil
	if err := s.Status().Patch(t.Context(), lost, client.MergeFrom(r)); err != nil {
		t.Fatal(err)
	}
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Server.ProgressDeadlineSeconds = 700 })
	s.eventually("the endpoint to be back", func(ctx context.Context) error {
		if err := s.Get(ctx, s.key("fleet"), r); err != nil || r.Status.Endpoint == nil || r.Status.Endpoint.URL != url {
			return fmt.Errorf("it is %v, %w", r.Status.Endpoint, err)
		}
		return nil
	})
	s.serviceBack(before)
}

// serviceDeleted deletes the Service of the registry fleet.
func (s *site) serviceDeleted() {
	s.t.Helper()
	now := &corev1.Service{}
	s.get("fleet-server", now)
	if err := s.Delete(s.t.Context(), now); err != nil {
		s.t.Fatal(err)
	}
}

// serviceBack expects that the registry fleet has a Service as it was, whose port
// belongs to nobody but the host, and that clients are sent where they were.
func (s *site) serviceBack(before *corev1.Service) {
	s.t.Helper()
	now, port := &corev1.Service{}, before.Spec.Ports[0].NodePort
	s.eventually("the Service to be back", func(ctx context.Context) error { return s.Get(ctx, s.key("fleet-server"), now) })
	if got := now.Spec.Ports[0].NodePort; got != port {
		s.t.Fatalf("the Service has node port %d, and clients know %d", got, port)
	}
	r := s.ready("fleet")
	if !strings.HasSuffix(r.Status.Endpoint.URL, fmt.Sprint(":", port)) {
		s.t.Errorf("clients are sent to %s", r.Status.Endpoint.URL)
	}
	s.eventually("nobody to own the port", func(ctx context.Context) error {
		if err := s.Get(ctx, s.key("fleet-server"), now); err != nil {
			return err
		}
		for _, entry := range now.ManagedFields {
			if entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), "nodePort") {
				return fmt.Errorf("%s owns it by %s", entry.Manager, entry.Operation)
			}
		}
		return nil
	})
}
