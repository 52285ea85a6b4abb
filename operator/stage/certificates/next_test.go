package certificates

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// TestNextLost has the stage be complete while a next CA was published whose key is lost, or that
// has replaced such a one: what was published stays until another one signs, and no rotation to
// that one begins, or continues, before this stage is complete.
func TestNextLost(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, replaced, client2 := trusttest.NamedCA(t, "fleet-serving-ca", later), trusttest.NamedCA(t, "fleet-serving-ca", later), trusttest.NamedCA(t, "fleet-client-ca-2", later)
	given, other, third := trusttest.NamedCA(t, "fleet-serving-ca-2", later).PEM, trusttest.NamedCA(t, "fleet-serving-ca-2", later).PEM, trusttest.NamedCA(t, "fleet-serving-ca-3", later).PEM
	clients := trusttest.NamedCA(t, "fleet-client-ca", later)
	key := trust.KeyFingerprint(given)
	for _, test := range []struct {
		reason, mode string
		record       map[string]string
		signs        trusttest.CA
		next         map[string][]byte
		published    []byte
		accepted     []byte
		frozen       bool
		noted        string
		waits        bool
	}{
		{"it was deleted", "Independent", map[string]string{"serving": "1,2", "serving-next-key": key}, first, nil, join(first.PEM, given), clients.PEM, false, "", false},
		{"it was emptied", "Independent", map[string]string{"serving": "1,2", "serving-next-key": key}, first, map[string][]byte{"fleet-serving-ca-2": nil}, join(first.PEM, given), clients.PEM, false, "", false},
		{"it has another key", "Independent", map[string]string{"serving": "1,2", "serving-next-key": key}, first, map[string][]byte{"fleet-serving-ca-2": other}, join(first.PEM, given), clients.PEM, false, "", false},
		{"it was deleted, and nothing may be changed", "Independent", map[string]string{"serving": "1,2", "serving-next-key": key}, first, nil, join(first.PEM, given), clients.PEM, true, "", false},
		{"another generation is published in its place", "Independent", map[string]string{"serving": "1,3", "serving-next-key": trust.KeyFingerprint(third)}, first, map[string][]byte{"fleet-serving-ca-3": third}, join(first.PEM, given, third), clients.PEM, false, "", false},
		{"the one that signs was replaced while it is published", "Independent", map[string]string{"serving": "1,2", "serving-next-key": key}, replaced, map[string][]byte{"fleet-serving-ca-2": given}, join(first.PEM, replaced.PEM, given), clients.PEM, false, "", false},
		{"the one of clients", "Independent", map[string]string{"client": "1,2", "client-next-key": trust.KeyFingerprint(client2.PEM)}, first, nil, first.PEM, join(clients.PEM, client2.PEM), false, "", false},
		{"the host cluster alone has it", "Aggregated", map[string]string{"serving": "1,2"}, first, map[string][]byte{"fleet-serving-ca-2": other}, join(first.PEM, given), nil, false, "", false},
		{"there is no next one", "Independent", nil, replaced, nil, join(first.PEM, replaced.PEM), clients.PEM, false, operatorv1alpha1.ReasonCAReplaced, true},
		{"there is no next one of clients", "Independent", nil, first, nil, first.PEM, join(clients.PEM, client2.PEM), false, operatorv1alpha1.ReasonCAReplaced, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations"}, Data: test.record}
			objects := []client.Object{record, operandtest.Secret("fleet-serving-ca", test.signs.PEM), operandtest.Secret("fleet-serving", test.signs.Leaf()),
				operandtest.Secret("fleet-client-ca", clients.PEM), operandtest.Secret("fleet-admin", clients.Leaf()), operandtest.APIService("fleet", test.published)}
			for name, content := range test.next {
				objects = append(objects, operandtest.Secret(name, content))
			}
			registry := operandtest.InstalledAggregated
			if test.mode == "Independent" {
				registry = "{spec: {mode: Independent, etcd: {replicas: 1}}, status: {endpoint: {url: 'https://a'}}}"
			}
			s := stageOf(operandtest.New(t, registry, objects...))
			if s.Registry.Status.ClientCABundle = test.accepted; s.Registry.Status.Endpoint != nil {
				s.Registry.Status.Endpoint.CABundle = test.published
			}
			var err error
			if s.Authorities, err = trust.Read(t.Context(), s.Objects, generation.InUse{Signing: 1}, trust.Copy{}); err != nil {
				t.Fatal(err)
			}
			if test.frozen {
				s.Freeze("spec.paused is false")
			}
			v := s.replacedCAs(t.Context(), done)
			if v.Complete() == test.waits || v.Reason != test.noted {
				t.Errorf("%+v", v)
			}
			if published := s.Authorities.Serving.Bundle(); len(trust.Parse(published)) < len(trust.Parse(test.published)) {
				t.Errorf("published is\n%s", published)
			}
		})
	}
}
