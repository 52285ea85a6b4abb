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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	"text for a number":   {"{version: v0.1.0, mode: Independent, etcd: {replicas: many}}", "the operator can't decode .spec.etcd.replicas of ClusterRegistry "},
	"a list for a struct": {"{version: v0.1.0, mode: Independent, server: [], etcd: {replicas: 1}}", "the operator can't decode .spec.server of ClusterRegistry "},
	"an issuer unknown":   {"{version: v0.1.0, mode: Independent, tls: {issuerRef: {name: a}}, etcd: {replicas: 1}}", "CertificatesReady: "},
}

// testNonsense writes specs past the schema, one of them before the operator starts: they get a
// condition, and the operator goes on.
func testNonsense(t *testing.T, s *site, host *framework.Host) {
	for _, kind := range []string{"clusterregistries", "clusterregistrybackups"} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: kind + ".operator.clusterregistry.io"}}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			t.Fatal(err)
		}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
		if err := s.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	s.createRaw("ClusterRegistry", "first-of-all", "{etcd: {replicas: some}}")
	framework.StartOperator(t, host)
	s.external()
	created := map[string]string{"first-of-all": "the operator can't decode .spec.etcd.replicas of ClusterRegistry "}
	for what, test := range nonsense {
		name := strings.ReplaceAll(strings.ToLower(what), " ", "-")
		s.createRaw("ClusterRegistry", name, test.spec)
		created[name] = test.says
	}
	for name, says := range created {
		s.eventually(name+" to be reported", func(ctx context.Context) error {
			return s.saysRaw(ctx, "ClusterRegistry", name, operatorv1alpha1.ConditionReady, says)
		})
	}
	s.createRaw("ClusterRegistryBackup", "of-no-use", "{registryRef: {name: sense}, deletionPolicy: 1}")
	s.apply("sense", "{mode: Independent}")
	s.eventually("the backup to be reported", func(ctx context.Context) error {
		return s.saysRaw(ctx, "ClusterRegistryBackup", "of-no-use", operatorv1alpha1.BackupConditionDecodable, "the operator can't decode .spec.deletionPolicy of ClusterRegistryBackup ")
	})
	s.ready("sense")
	// What is corrected is decoded, and no longer said to be wrong.
	for name, fixed := range map[string]string{"first-of-all": `{"spec":{"version":"v9.9.9","etcd":{"replicas":1}}}`, "text-for-a-number": `{"spec":{"version":"v9.9.9","etcd":{"replicas":1}}}`} {
		if err := s.Patch(t.Context(), rawOf("ClusterRegistry", s.namespace, name), client.RawPatch(types.MergePatchType, []byte(fixed))); err != nil {
			t.Fatal(err)
		}
		s.eventually(name+" to be decoded", func(ctx context.Context) error {
			return s.saysRaw(ctx, "ClusterRegistry", name, operatorv1alpha1.ConditionReady, "VersionSupported: this operator does not know version")
		})
	}
}

// rawOf returns an object as no type of ours reads it.
func rawOf(kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind(kind))
	object.SetName(name)
	object.SetNamespace(namespace)
	return object
}

// createRaw creates an object with a spec in YAML that its type may not hold. It goes with the
// test: others read all registries by their type.
func (s *site) createRaw(kind, name, spec string) {
	s.t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the host to take "+name, func(ctx context.Context) error {
		object := rawOf(kind, s.namespace, name)
		object.Object["spec"] = content
		return client.IgnoreAlreadyExists(s.Create(ctx, object))
	})
	s.t.Cleanup(func() {
		if err := client.IgnoreNotFound(s.Delete(context.Background(), rawOf(kind, s.namespace, name))); err != nil {
			s.t.Error(err)
		}
	})
}

// saysRaw returns nil when a condition is False with a message that begins so.
func (s *site) saysRaw(ctx context.Context, kind, name, condition, says string) error {
	object := rawOf(kind, s.namespace, name)
	if err := s.Get(ctx, s.key(name), object); err != nil {
		return err
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if content, ok := object.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			return err
		}
	}
	found := meta.FindStatusCondition(status.Conditions, condition)
	if found == nil || found.Status != metav1.ConditionFalse || !strings.HasPrefix(found.Message, says) {
		return fmt.Errorf("it says:\n%s", shown(status.Conditions))
	}
	return nil
}
