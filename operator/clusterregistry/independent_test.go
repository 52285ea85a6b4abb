package clusterregistry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestIndependentConfig asks an independent registry as fast as one behind the host.
func TestIndependentConfig(t *testing.T) {
	s := look(t, "{spec: {mode: Independent}}")
	r := reading(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-admin"}, Data: map[string][]byte{corev1.TLSCertKey: []byte("c"), corev1.TLSPrivateKeyKey: []byte("k")}})
	r.Host = &rest.Config{QPS: 50, Burst: 100}
	config, err := r.independentConfig(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS != 50 || config.Burst != 100 || config.Host != "https://fleet-server.team.svc" || string(config.CertData) != "c" {
		t.Errorf("%+v", config)
	}
}
