package servers

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestIndependentConfig asks an independent registry as fast as one behind the host, and past a
// proxy that the operator's environment names.
func TestIndependentConfig(t *testing.T) {
	admin := operandtest.Secret("fleet-admin", []byte("c"))
	admin.Data[corev1.TLSPrivateKeyKey] = []byte("k")
	access := Access{Objects: operandtest.New(t, "{spec: {mode: Independent}}", admin), Host: &rest.Config{QPS: 50, Burst: 100}}
	config, err := access.independent(t.Context(), []byte("CA"))
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS != 50 || config.Burst != 100 || config.Host != "https://fleet-server.team.svc" || string(config.CertData) != "c" || string(config.KeyData) != "k" || string(config.CAData) != "CA" {
		t.Errorf("%+v", config)
	}
	if config.Proxy == nil { // else it is the environment's
		t.Fatal("a proxy of the environment is used")
	}
	if proxy, err := config.Proxy(&http.Request{}); proxy != nil || err != nil {
		t.Errorf("it is asked through %s, %v", proxy, err)
	}
}
