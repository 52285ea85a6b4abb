package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestClusterRegistryAPI uses the operator's API as its users do, without the
// operator: what is accepted and what refused, and how objects are shown.
func TestClusterRegistryAPI(t *testing.T) {
	t.Parallel()
	for _, version := range hosts {
		t.Run(version, func(t *testing.T) {
			host := framework.StartHost(t, version, "front-proxy-client")
			t.Run("the host is real", func(t *testing.T) { testHostIsReal(t, host, version) })
			kubeconfig := host.Kubeconfig("root", "system:masters")
			installCRD(t, framework.NewKubectl(t, newest, kubeconfig))
			scheme := runtime.NewScheme()
			if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			registries, err := client.New(host.Config, client.Options{Scheme: scheme})
			if err != nil {
				t.Fatal(err)
			}
			t.Run("samples", func(t *testing.T) { testSamples(t, framework.NewKubectl(t, newest, kubeconfig)) })
			t.Run("applied twice", func(t *testing.T) { testAppliedTwice(t, framework.NewKubectl(t, newest, kubeconfig)) })
			t.Run("refused", func(t *testing.T) { testRefused(t, registries) })
			t.Run("refused changes", func(t *testing.T) { testRefusedChanges(t, registries) })
			t.Run("a size taken back", func(t *testing.T) { testSizeTakenBack(t, registries) })
			t.Run("defaults", func(t *testing.T) { testDefaults(t, registries) })
			t.Run("kubectl", func(t *testing.T) { testShown(t, framework.NewKubectl(t, newest, kubeconfig)) })
		})
	}
}

// installCRD applies the CRDs and waits until they are served.
func installCRD(t *testing.T, kubectl *framework.Kubectl) {
	t.Helper()
	dir := filepath.Join(framework.Root(t), "manifests", "operator", "crd")
	kubectl.Run("apply", "-f", dir)
	kubectl.Established("-f", dir)
	framework.Eventually(t, "the host to know the schema", func(context.Context) error {
		_, err := kubectl.Try("explain", "creg.spec")
		return err
	})
}

// testSamples applies each sample and the examples of the guide.
func testSamples(t *testing.T, kubectl *framework.Kubectl) {
	root := framework.Root(t)
	samples, err := filepath.Glob(filepath.Join(root, "manifests", "samples", "*.yaml"))
	if err != nil || len(samples) < 4 {
		t.Fatalf("samples %v, %v", samples, err)
	}
	for _, sample := range samples {
		if out := kubectl.Run("apply", "--dry-run=server", "--validate=strict", "-f", sample); !strings.Contains(out, " created (server dry run)") {
			t.Errorf("%s: %s", sample, out)
		}
	}
	for _, example := range guideExamples(t) {
		kubectl.Stdin(example).Run("apply", "--dry-run=server", "--validate=strict", "-f", "-")
	}
}

// guideExamples returns the manifests in the guide to the fields of a registry.
func guideExamples(t *testing.T) (out []string) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(framework.Root(t), "docs", "how-to", "configure.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(guide), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(block, "```")
		out = append(out, example)
	}
	if len(out) < 2 {
		t.Fatalf("docs/how-to/configure.md has %d examples", len(out))
	}
	return out
}

// fleet is a registry in which tables of wrong ones replace a part.
const fleet = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: default}
spec:
  version: v0.1.0
  mode: Independent
  paused: false
  server: {}
  etcd: {replicas: 3}
  tls: {}
`

func fleetBut(t *testing.T, pairs ...string) *unstructured.Unstructured {
	t.Helper()
	text := fleet
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in:\n%s", pairs[i], text)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return object
}

// refused reports whether the host refused an object for the field and with the
// sentence. What it says between them, the value, depends on its version.
func refused(err error, at, says string) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), at+": ") && strings.Contains(err.Error(), says)
}

func testRefused(t *testing.T, registries client.Client) {
	for _, test := range wrong {
		err := registries.Create(t.Context(), fleetBut(t, test.old, test.new), client.DryRunAll)
		if !refused(err, test.at, test.says) {
			t.Errorf("%q instead of %q: want %s: %q, got: %v", test.new, test.old, test.at, test.says, err)
		}
	}
	for _, test := range right {
		if err := registries.Create(t.Context(), fleetBut(t, test.old, test.new), client.DryRunAll); err != nil {
			t.Errorf("%q instead of %q: %v", test.new, test.old, err)
		}
	}
}

func testRefusedChanges(t *testing.T, registries client.Client) {
	for _, test := range changes {
		before := fleetBut(t, test.from...)
		if err := registries.Create(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		after := fleetBut(t, test.to...)
		after.SetResourceVersion(before.GetResourceVersion())
		err := registries.Update(t.Context(), after)
		if test.says == "" && err != nil || test.says != "" && !refused(err, test.at, test.says) {
			t.Errorf("from %q to %q: want %s: %q, got: %v", test.from, test.to, test.at, test.says, err)
		}
		if err := registries.Delete(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
}

// testSizeTakenBack has a size that volumes can't grow to be taken back, as far as these are,
// and no further.
func testSizeTakenBack(t *testing.T, registries client.Client) {
	registry := fleetBut(t, "replicas: 3", "replicas: 3, storage: {size: 32Gi}")
	if err := registries.Create(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registries.Delete(context.Background(), registry) })
	set := func(size string) error {
		if err := unstructured.SetNestedField(registry.Object, size, "spec", "etcd", "storage", "size"); err != nil {
			t.Fatal(err)
		}
		return registries.Update(t.Context(), registry)
	}
	if err := unstructured.SetNestedField(registry.Object, "8Gi", "status", "etcd", "volumeSize"); err != nil {
		t.Fatal(err)
	}
	if err := registries.Status().Update(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	if err := set("4Gi"); !refused(err, "spec.etcd.storage", "can grow but not shrink") {
		t.Errorf("less than the volumes have: %v", err)
	}
	if err := set("8Gi"); err != nil {
		t.Errorf("what the volumes have: %v", err)
	}
}

// testDefaults reads what the host made of the least that a registry says.
func testDefaults(t *testing.T, registries client.Client) {
	least := &operatorv1alpha1.ClusterRegistry{}
	least.Name, least.Namespace = "least", "default"
	least.Spec.Version, least.Spec.Mode = "v0.1.0", operatorv1alpha1.ModeIndependent
	least.Spec.Etcd.Replicas, least.Spec.Etcd.Storage = 1, &operatorv1alpha1.Storage{}
	least.Spec.Server.Service = &operatorv1alpha1.Service{}
	least.Spec.Server.Authentication = &operatorv1alpha1.Authentication{ConfigMapRef: operatorv1alpha1.ConfigMapKeySelector{Name: "issuers"}}
	least.Spec.Server.Authorization = &operatorv1alpha1.Authorization{WebhookSecretRef: &operatorv1alpha1.SecretKeySelector{Name: "webhook"}}
	least.Spec.TLS.IssuerRef, least.Spec.TLS.CABundle = &operatorv1alpha1.IssuerReference{Name: "corporate"}, framework.NewAuthority(t, "corporate").PEM
	if err := registries.Create(t.Context(), least, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(least.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"deletionPolicy: Retain\n", "images:\n  pullPolicy: IfNotPresent\n", "  replicas: 2\n", "    type: ClusterIP\n", "    size: " + operatorv1alpha1.DefaultStorageSize + "\n",
		"      key: authentication.yaml\n", "      key: kubeconfig\n", "  duration: 2160h0m0s\n", "    group: cert-manager.io\n    kind: Issuer\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
