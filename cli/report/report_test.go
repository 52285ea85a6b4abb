package report

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

const (
	key   = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJk4\n-----END EC PRIVATE KEY-----"
	token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJnZWhlaW0ifQ.c2lnbmF0dXJl"
)

// secrets are what may not be in an archive.
var secrets = []string{"MHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJk4", "PRIVATE KEY", token, "geheim"}

func TestLogs(t *testing.T) {
	for reason, line := range map[string]string{
		"a private key":             "key:\n" + key,
		"a private key in one line": strings.ReplaceAll(key, "\n", `\n`),
		"a JSON web token":          `msg="authenticated" t=` + token,
		"a header":                  "Authorization: Basic geheim1234",
		"a bearer":                  "sent Bearer geheimgeheim",
		"a flag":                    "started with --password=geheim",
		"a setting in JSON":         `{"client_secret":"geheim"}`,
		"a URL":                     "dial https://ann:geheim@etcd.example",
		"behind another name":       "login failed: password=geheim",
		"in a query":                "url=https://x/y?access_token=geheim",
		"in a message in JSON":      `{"msg":"token=geheim"}`,
		"two names":                 "error: client_secret: geheim",
		"JSON in JSON":              `{"msg":"sent {\"password\":\"geheim\"}"}`,
		"a flag and its value":      "started with --password geheim",
		"a list of arguments":       `args=["--verbose","--token","geheim"]`,
		"a token as user":           "clone https://geheim@git.example/x",
		"a signed URL":              "GET https://b.example/x?se=2026&sig=geheim",
		"a URL signed for S3":       "GET https://b.example/x?X-Amz-Credential=geheim",
		"the end of a private key":  key[strings.Index(key, "\n")+1:],
	} {
		got := log("before\n" + line + "\nafter")
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q shows in\n%s", reason, secret, got)
			}
		}
		if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "\nafter") {
			t.Errorf("%s: the lines around it are gone: %s", reason, got)
		}
	}
	const ordinary = `I1123 12:00:00 reconcile.go:7] "Reconciled" registry="registries/fleet" secretName="fleet-serving" token=false`
	for _, line := range []string{
		ordinary,
		"--etcd-servers=https://fleet-etcd-0.fleet-etcd:2379 --tls-private-key-file /tls/tls.key --v 2",
		`MountVolume.SetUp failed for volume "tls" : secret "fleet-serving" not found`,
	} {
		if got := log(line); got != line {
			t.Errorf("an ordinary line becomes %s", got)
		}
	}
}

var pod = `
apiVersion: v1
kind: Pod
metadata:
  name: fleet-server-0
  namespace: registries
  labels: {app.kubernetes.io/managed-by: clusterregistry-operator, app.kubernetes.io/instance: fleet}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: geheim, note: ` + token + `, kapp.k14s.io/original: ' {"data":{"a":"geheim"}}', long: ` + strings.Repeat("geheim ", 200) + `, short: kept}
  managedFields: [{manager: geheim}]
spec:
  containers:
  - name: server
    image: example/server
    args: [--etcd-prefix=/registry, --token, geheim, "--password=geheim"]
    env: [{name: API_KEY, value: geheim}, {name: REGION, value: eu}, {name: PLAIN, value: "https://ann:geheim@x.example"}]
    volumeMounts: [{name: tls, mountPath: /tls}]
    command: [sh, -c, "login --password geheim; exec server"]
  volumes: [{name: tls, secret: {secretName: fleet-serving}}]
status:
  message: "could not sign in: password=geheim"
`

// neighbors are beside a registry and its operator, and of no bug report's business.
var neighbors = []string{
	"apiVersion: v1\nkind: Pod\nmetadata: {name: shop-0, namespace: registries, labels: {app.kubernetes.io/name: shop}}\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: shop-1, namespace: clusterregistry-system, labels: {app.kubernetes.io/managed-by: clusterregistry-operator, app.kubernetes.io/instance: fleet}}\n",
	"apiVersion: v1\nkind: Event\nmetadata: {name: shop-2, namespace: registries}\ninvolvedObject: {kind: Pod, name: shop-0}\n",
	"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: shop-3, namespace: clusterregistry-system}\n",
	"apiVersion: operator.clusterregistry.io/v1alpha1\nkind: ClusterRegistry\nmetadata: {name: shop-4, namespace: registries}\nspec: {version: v0.4.0}\n",
	"apiVersion: cert-manager.io/v1\nkind: CertificateRequest\nmetadata: {name: shop-5, namespace: registries, ownerReferences: [{kind: Certificate, name: shop}]}\n",
}

// own are of the registry and the operator, each in its own way.
var own = []string{
	"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: fleet-etcd, namespace: registries, labels: {app.kubernetes.io/managed-by: clusterregistry-operator, app.kubernetes.io/instance: fleet}}\n",
	"apiVersion: v1\nkind: Event\nmetadata: {name: of-a-pod, namespace: registries}\ninvolvedObject: {kind: Pod, name: fleet-server-0}\n",
	"apiVersion: v1\nkind: Event\nmetadata: {name: of-a-lost-pod, namespace: registries}\ninvolvedObject: {kind: Pod, name: fleet-etcd-0}\n",
	"apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: fleet-ca, namespace: registries, labels: {app.kubernetes.io/managed-by: clusterregistry-operator, app.kubernetes.io/instance: fleet}}\n",
	"apiVersion: cert-manager.io/v1\nkind: CertificateRequest\nmetadata: {name: of-a-certificate, namespace: registries, ownerReferences: [{kind: Certificate, name: fleet-ca}]}\n",
	"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: of-olm, namespace: clusterregistry-system}\nspec: {template: {metadata: {labels: {app.kubernetes.io/name: clusterregistry-operator}}}}\n",
	"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: clusterregistry-operator, namespace: clusterregistry-system}\n",
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// newEnv returns a host cluster with a registry, a pod, and Secrets that are not to be
// read.
func newEnv(t *testing.T) (*commandtest.Env, *fake.Clientset) {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "secrets"}: "SecretList", {Version: "v1", Resource: "configmaps"}: "ConfigMapList"}
	for _, resource := range append(namespaced, clusterScoped...) {
		kinds[resource] = strings.TrimSuffix(resource.Resource, "s") + "List"
	}
	env := commandtest.New(t)
	var others []runtime.Object
	for _, text := range slices.Concat(neighbors, own) {
		others = append(others, parse(t, text))
	}
	env.Objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, append(others,
		parse(t, "apiVersion: operator.clusterregistry.io/v1alpha1\nkind: ClusterRegistry\nmetadata: {name: fleet, namespace: registries}\nspec: {version: v0.4.0}\n"), parse(t, pod),
		parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: fleet-admin, namespace: registries}\nstringData: {a: geheim}\n"))...)
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server-0", Namespace: "registries", Labels: map[string]string{"app.kubernetes.io/name": "clusterregistry", "app.kubernetes.io/managed-by": "clusterregistry-operator", "app.kubernetes.io/instance": "fleet"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "server", RestartCount: 1}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-0", Namespace: "registries", Labels: map[string]string{"app.kubernetes.io/name": "shop"}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "shop"}}}})
	env.Kubernetes = func() (kubernetes.Interface, error) { return client, nil }
	return env, client
}

// files returns what is in an archive.
func files(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	uncompressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(header.Name, "fleet-20261123-120000/")] = string(content)
	}
}

// TestReport expects what a bug report needs, and no credential.
func TestReport(t *testing.T) {
	env, client := newEnv(t)
	env.Objects.PrependReactor("list", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "registries", nil, errors.New("leases are forbidden: " + token)
	})
	path := filepath.Join(t.TempDir(), "report.tar.gz")
	if text, code := env.Run(t, New(env.Env), "fleet", "--file", path); code != 0 {
		t.Fatal(text)
	}
	found := files(t, path)
	for name, want := range map[string]string{
		"registries/clusterregistries.yaml":                  "name: fleet",
		"registries/pods.yaml":                               "secretName: fleet-serving",
		"registries/logs/fleet-server-0_server.log":          "fake logs",
		"registries/logs/fleet-server-0_server_previous.log": "fake logs",
		"clusterregistry-system/events.yaml":                 "kind: List",
		"cluster/apiservices.yaml":                           "kind: List",
		"errors.txt":                                         "registries/leases.yaml: " + left,
	} {
		if !strings.Contains(found[name], want) {
			t.Errorf("%s has %q", name, found[name])
		}
	}
	if !strings.Contains(found["registries/pods.yaml"], "value: eu") || !strings.Contains(found["registries/pods.yaml"], "--etcd-prefix=/registry") || !strings.Contains(found["registries/pods.yaml"], "short: kept") {
		t.Errorf("harmless values are left out:\n%s", found["registries/pods.yaml"])
	}
	for name, want := range map[string]string{
		"registries/events.yaml": "of-a-pod of-a-lost-pod", "registries/certificaterequests.yaml": "of-a-certificate",
		"clusterregistry-system/deployments.yaml": "of-olm", "clusterregistry-system/leases.yaml": "clusterregistry-operator",
	} {
		for _, object := range strings.Fields(want) {
			if !strings.Contains(found[name], "name: "+object+"\n") {
				t.Errorf("%s lacks %s:\n%s", name, object, found[name])
			}
		}
	}
	for name, content := range found {
		if strings.Contains(name+content, "shop") {
			t.Errorf("%s has something of a neighbor:\n%s", name, content)
		}
		for _, secret := range secrets {
			if strings.Contains(content, secret) {
				t.Errorf("%s has %q:\n%s", name, secret, content)
			}
		}
	}
	for _, action := range append(env.Objects.Actions(), client.Actions()...) {
		if resource := action.GetResource().Resource; resource == "secrets" || resource == "configmaps" || action.GetVerb() != "list" && action.GetVerb() != "get" {
			t.Errorf("it has sent %s %s", action.GetVerb(), resource)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive has %v, %v", info.Mode(), err)
	}
	// What is there is not overwritten.
	if text, code := env.Run(t, New(env.Env), "fleet", "--file", path); code != 1 || !strings.HasSuffix(text, "file exists; name another file with --file") {
		t.Errorf("again: %d, %s", code, text)
	}
	if text, code := env.Run(t, New(env.Env), "other"); code != 2 || text != `there is no ClusterRegistry "other": there are registries/fleet, registries/shop-4` {
		t.Errorf("another name: %d, %s", code, text)
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestReportCantBeWritten expects that half of an archive is not taken for one.
func TestReportCantBeWritten(t *testing.T) {
	env, _ := newEnv(t)
	env.Out = full{}
	if text, code := env.Run(t, New(env.Env), "fleet", "--file=-"); code != 1 || text != "write the archive: no space left on device" {
		t.Errorf("a full disk: %d, %s", code, text)
	}
	if text, code := env.Run(t, New(env.Env), "fleet", "--file=/nowhere/report.tar.gz"); code != 1 || !strings.HasPrefix(text, "write the archive: open /nowhere/report.tar.gz: ") || !strings.HasSuffix(text, "; name another file with --file") {
		t.Errorf("no directory: %d, %s", code, text)
	}
}

// TestReportInterrupted expects no archive that lacks what was not read.
func TestReportInterrupted(t *testing.T) {
	env, _ := newEnv(t)
	path := filepath.Join(t.TempDir(), "report.tar.gz")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := &reporter{env: env.Env, file: path, operatorNamespace: "clusterregistry-system"}
	if err := r.run(ctx, "fleet"); !errors.Is(err, context.Canceled) || err.Error() != "the report was interrupted, and no archive is left: context canceled" {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the archive is there: %v", err)
	}
}
