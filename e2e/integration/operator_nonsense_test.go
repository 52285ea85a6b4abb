package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// nonsense are specs that the schema refuses, each with what Ready says of it in
// the end.
var nonsense = map[string]struct{ spec, says string }{
	"two members":         {"{version: v0.1.0, mode: Independent, etcd: {replicas: 2}}", "EtcdReady: 0 of 2 etcd members ready"},
	"no members":          {"{version: v0.1.0, mode: Independent, etcd: {replicas: 0}}", "EtcdReady: spec.etcd.replicas is 0"},
	"fewer than none":     {"{version: v0.1.0, mode: Independent, etcd: {replicas: -1}}", "EtcdReady: spec.etcd.replicas is -1"},
	"no etcd":             {"{version: v0.1.0, mode: Independent}", "EtcdReady: spec.etcd.replicas is 0"},
	"no mode":             {"{version: v0.1.0, etcd: {replicas: 1}}", "EtcdReady: 0 of 1 etcd members ready"},
	"an unknown mode":     {"{version: v0.1.0, mode: Other, etcd: {replicas: 1}}", "EtcdReady: 0 of 1 etcd members ready"},
	"an unknown version":  {"{version: v9.9.9, mode: Aggregated, etcd: {replicas: 1}}", "VersionSupported: this operator does not know version"},
	"no version":          {"{mode: Aggregated, etcd: {replicas: 1}}", "VersionSupported: this operator does not know version"},
	"both kinds of etcd":  {"{version: v0.1.0, mode: Independent, etcd: {replicas: 3, external: {endpoints: [], tlsSecretRef: {name: none}}}}", "EtcdReady: Secret none"},
	"an endpoint of what": {"{version: v0.1.0, mode: Independent, etcd: {external: {endpoints: ['::'], tlsSecretRef: {name: etcd}}}}", "EtcdReady: "},
	"no endpoints":        {"{version: v0.1.0, mode: Independent, etcd: {external: {endpoints: [], tlsSecretRef: {name: etcd}}}}", "EtcdReady: spec.etcd.external.endpoints is empty"},
	"a Secret of no name": {"{version: v0.1.0, mode: Independent, etcd: {external: {endpoints: ['https://127.0.0.1:1'], tlsSecretRef: {name: ''}}}}", "EtcdReady: Secret "},
	"no duration":         {"{version: v0.1.0, mode: Independent, tls: {duration: 0s}, etcd: {replicas: 1}}", "EtcdReady: 0 of 1 etcd members ready"},
	"a Service of what":   {"{version: v0.1.0, mode: Independent, server: {service: {type: Other}}, etcd: {replicas: 1}}", "CertificatesReady: apply Service"},
	"tokens of manifests": {"{version: v0.1.0, mode: Independent, server: {nodeSelector: {a: '<b>'}}, etcd: {replicas: 1}}", "EtcdReady: 0 of 1 etcd members ready"},
	"an issuer unknown":   {"{version: v0.1.0, mode: Independent, tls: {issuerRef: {name: a}}, etcd: {replicas: 1}}", "CertificatesReady: "},
}

// testNonsense writes specs past the schema: they get a condition, and the
// operator goes on.
func testNonsense(t *testing.T, s *site, host *framework.Host) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterregistries.operator.clusterregistry.io"}}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	if err := s.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	framework.StartOperator(t, host)
	s.external()
	created := map[string]string{}
	for what, test := range nonsense {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("spec: "+test.spec), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry"))
		object.SetName(strings.ReplaceAll(strings.ToLower(what), " ", "-"))
		object.SetNamespace(s.namespace)
		s.eventually("the host to take "+what, func(ctx context.Context) error { return s.Create(ctx, object) })
		created[object.GetName()] = test.says
	}
	for name, says := range created {
		s.eventually(name+" to be reported", func(ctx context.Context) error {
			r := &operatorv1alpha1.ClusterRegistry{}
			if err := s.Get(ctx, s.key(name), r); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(r.Status.Conditions, operatorv1alpha1.ConditionReady)
			if ready == nil || ready.Status != metav1.ConditionFalse || !strings.HasPrefix(ready.Message, says) {
				return fmt.Errorf("it says:\n%s", shown(r.Status.Conditions))
			}
			return nil
		})
	}
	s.apply("sense", "{mode: Independent}")
	s.ready("sense")
}
