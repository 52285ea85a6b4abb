package clusterregistry

import (
	"encoding/base64"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// observing returns what is observed of a registry in a host cluster with the given
// objects, of which the cache has none but the registry.
func observing(t *testing.T, text string, objects ...client.Object) *scope {
	t.Helper()
	registry := look(t, text).Registry
	r := reading(t, nil, append(objects, registry)...)
	r.Client = operandtest.Host(t, registry.DeepCopy()).Client
	r.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{GitVersion: "v1.37.1"}}
	s, err := r.observe(t.Context(), client.ObjectKeyFromObject(registry))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestObserveClientCAs has the status say which client certificates are accepted: those of
// the present CA and, until they expire, those of the previous one.
func TestObserveClientCAs(t *testing.T) {
	later := time.Now().Add(time.Hour)
	previous, present := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	text := "{spec: {mode: Independent, version: v0.1.0, etcd: {replicas: 1}}, status: {clientCABundle: " + base64.StdEncoding.EncodeToString(previous.PEM) + "}}"
	s := observing(t, text, operandtest.Secret("fleet-client-ca", present.PEM))
	if want := string(present.PEM) + string(previous.PEM); string(s.Registry.Status.ClientCABundle) != want {
		t.Errorf("the status has\n%s", s.Registry.Status.ClientCABundle)
	}
}

// TestObserveVolumes has data be seen that the cache does not have yet.
func TestObserveVolumes(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-1"}}
	s := observing(t, "{spec: {mode: Aggregated, version: v0.1.0, etcd: {replicas: 3}}}", claim)
	if len(s.Volumes.Members) != 1 || s.Volumes.Members[0].Name != claim.Name {
		t.Errorf("%+v", s.Volumes)
	}
}
