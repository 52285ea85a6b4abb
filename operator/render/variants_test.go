package render

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
)

// registry is a registry for variants to begin with.
const registry = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: team}
spec: {version: v0.1.0, mode: Independent, etcd: {replicas: 3}}
`

// variants returns inputs that use every manifest: the fixtures, and what they
// leave out.
func variants(t *testing.T) map[string]Input {
	t.Helper()
	out := map[string]Input{}
	for _, fixture := range fixtures(t) {
		out[fixture] = inputOf(t, newest(t), fixture)
	}
	for name, spec := range map[string]string{
		"aggregated over an external etcd": `{version: v0.1.0, mode: Aggregated, etcd: {external: {endpoints: ["https://etcd:2379"], tlsSecretRef: {name: etcd}}}}`,
		"five members":                     `{version: v0.1.0, mode: Independent, server: {replicas: 5}, etcd: {replicas: 5}}`,
		"a foreign issuer":                 `{version: v0.1.0, mode: Aggregated, etcd: {replicas: 1}, tls: {issuerRef: {name: corporate}, caBundle: Q0E=}}`,
		"a single controller":              `{version: v0.1.0, mode: Independent, server: {replicas: 1}, etcd: {replicas: 1}, controllers: {registerHost: {name: host}}}`,
		"users from elsewhere":             `{version: v0.1.0, mode: Independent, etcd: {replicas: 1}, server: {replicas: 1, authentication: {configMapRef: {name: issuers}}, authorization: {webhookSecretRef: {name: webhook}}}}`,
		"an audit log in files":            `{version: v0.1.0, mode: Aggregated, etcd: {replicas: 1}, server: {replicas: 2, audit: {policyConfigMapRef: {name: audit}, log: {destination: File}}}}`,
		"encrypted":                        `{version: v0.1.0, mode: Independent, etcd: {replicas: 1}, server: {replicas: 2, encryption: {secretRef: {name: keys}}}}`,
	} {
		out[name] = input(t, strings.Replace(registry, "{version: v0.1.0, mode: Independent, etcd: {replicas: 3}}", spec, 1))
	}
	upgraded := input(t, registry)
	upgraded.Snapshot = "before-the-next"
	out["before an upgrade"] = upgraded
	rotating := input(t, registry)
	rotating.Authorities = Authorities{Etcd: generation.InUse{Signing: 9999, Also: 1}, Serving: generation.InUse{Signing: 1, Also: 9999}, Clients: generation.InUse{Signing: 9999}}
	out["while CAs are rotated"] = rotating
	for name, lineage := range map[string]string{"looking a backup up": "", "restoring a backup": "5f2c"} {
		restoring := input(t, registry)
		restoring.Restore = &Restore{Store: operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "b", CABundle: []byte("CA"), SecretRef: &operatorv1alpha1.LocalObjectReference{Name: "store"}}}, Source: "0b9c", Name: "b", SHA256: "ab", Lineage: lineage, Task: "show 1"}
		out[name] = restoring
	}
	return out
}

// change returns the input of a variant's registry after a change.
func change(in Input, modify func(*operatorv1alpha1.ClusterRegistry)) Input {
	in.Registry = in.Registry.DeepCopy()
	modify(in.Registry)
	return in
}

// find returns a rendered object, nil when there is none of that kind and name.
func find(result *Result, kind, name string) *unstructured.Unstructured {
	for _, object := range result.Objects() {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	return nil
}

// convert turns an object into its type.
func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, out, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return out
}

// podTemplates returns the templates of all pods, by kind and name.
func podTemplates(t *testing.T, result *Result) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for _, object := range result.Objects() {
		switch object.GetKind() {
		case "Deployment":
			out["Deployment "+object.GetName()] = convert[appsv1.Deployment](t, object).Spec.Template
		case "Job":
			out["Job "+object.GetName()] = convert[batchv1.Job](t, object).Spec.Template
		case "StatefulSet":
			out["StatefulSet "+object.GetName()] = convert[appsv1.StatefulSet](t, object).Spec.Template
		default:
			if _, found, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec"); found {
				t.Errorf("%s %s has pods that no test looks at", object.GetKind(), object.GetName())
			}
		}
	}
	if len(out) == 0 {
		t.Error("there are no pods")
	}
	return out
}
