package integration

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// scraped is a target of a scraper, and what it served each time.
type scraped struct {
	// Labels are those that docs/reference/metrics.md has a scraper add.
	Labels      map[string]string `json:"labels"`
	HonorLabels bool              `json:"honorLabels"`
	Texts       []string          `json:"texts"`

	read func(context.Context) (string, error)
	// promises are metrics that are there some time after the start.
	promises []string
}

// TestServed scrapes the operator, a server, an etcd and a controller, while a registry is ready
// and while it is upgraded, and has hack/promtool ask each query of the dashboard and the alerts
// of what they served.
func TestServed(t *testing.T) {
	if !framework.Full() {
		t.Skip("it compiles Prometheus' engine")
	}
	t.Parallel()
	h := newOperatorHost(t)
	framework.InstallCertManagerAPI(t, h.kubectl)
	h.kubectl.Run("apply", "-f", filepath.Join(framework.Root(t), "manifests", "monitoring", "clusterrole.yaml"))
	h.kubectl.Run("create", "clusterrolebinding", "scraper", "--clusterrole=clusterregistry:metrics-reader", "--group=system:serviceaccounts:default")
	token, _ := h.Tokens()
	s, stored := h.at(t), h.at(t)
	targets := []*scraped{servedByOperator(t, h.Host, token)}
	// Conditions of what the other registry does not have.
	stored.apply("stored", "{version: v0.2.0, mode: Aggregated, etcd: {replicas: 1}, backup: {schedule: 0 * * * *, store: {persistentVolumeClaim: {claimName: backups}}}, controllers: {health: {}}}")
	s.apply("fleet", "{version: v0.1.0, mode: Independent}")
	s.ready("fleet")
	targets = append(targets, servedBesides(t, s, h.Host, token)...)

	scrape(t, targets)
	s.idle = true
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Version = "v0.2.0" })
	targets[0].promises = append(targets[0].promises, "clusterregistry_operation_phase_start_timestamp_seconds{")
	scrape(t, targets)
	ask(t, targets)
}

// servedByOperator starts the operator.
func servedByOperator(t *testing.T, host *framework.Host, token string) *scraped {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", framework.FreePort(t))
	framework.StartOperator(t, host, quickResync(), "--metrics-bind-address="+address)
	const service = "clusterregistry-operator-metrics"
	return &scraped{
		Labels: map[string]string{"job": service, "service": service, "namespace": framework.OperatorNamespace, "pod": "clusterregistry-operator-0"}, HonorLabels: true,
		read: metricsAt("https://"+address, token), promises: []string{"clusterregistry_info{", "clusterregistry_etcd_database_size_bytes{", `type="BackupReady"`},
	}
}

// servedBesides starts what serves metrics of the registry fleet of a site beside the operator: a
// server with an etcd, and a controller.
func servedBesides(t *testing.T, s *site, host *framework.Host, token string) []*scraped {
	t.Helper()
	listens := fmt.Sprintf("http://127.0.0.1:%d", framework.FreePort(t))
	registry, clients, config := independentOn(t, framework.StartEtcd(t, 1, "--listen-metrics-urls="+listens))
	clusters := versioned.NewForConfigOrDie(config).ClusterregistryV1beta1().Clusters()
	if _, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	exports := filepath.Join(t.TempDir(), "exports.json")
	if err := os.WriteFile(exports, []byte(`[{"namespace": "default", "format": "ClusterProfile"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", framework.FreePort(t))
	framework.StartController(t, "--kubeconfig="+registry.Kubeconfig(t, clients.Issue("controller", []string{contract.HealthGroup})), "--host-kubeconfig="+host.Kubeconfig("root", "system:masters"),
		"--namespace="+s.namespace, "--registry-name=fleet", "--health", "--exports-file="+exports, "--cluster-api", "--cluster-api-namespaces=default", "--cluster-api-period=1s", "--metrics-bind-address="+address)
	admin := clientset(t, config)
	return []*scraped{
		{
			Labels: map[string]string{"job": "fleet-server", "service": "fleet-server", "namespace": s.namespace, "pod": "fleet-server-0"},
			read: func(ctx context.Context) (string, error) {
				text, err := admin.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
				return string(text), err
			},
			promises: []string{`apiserver_resource_objects{group="clusterregistry.k8s.io"`, `apiserver_longrunning_requests{`},
		},
		{Labels: map[string]string{"job": "fleet-etcd", "namespace": s.namespace, "pod": "fleet-etcd-0"}, read: metricsAt(listens, "")},
		{
			Labels: map[string]string{"job": "controllers", "namespace": s.namespace, "pod": "fleet-controller-0", "app_kubernetes_io_instance": "fleet"},
			read:   metricsAt("https://"+address, token), promises: []string{"clusterregistry_controller_export_ready{", "clusterregistry_controller_cluster_api_namespace_ready{"},
		},
	}
}

// metricsAt reads metrics with a token, as a scraper does.
func metricsAt(url, token string) func(context.Context) (string, error) {
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // self-signed
	return func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
		if err != nil {
			return "", err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := insecure.Do(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", response.Status, text)
		}
		return string(text), err
	}
}

// scrape adds what each target serves, once it has all that it promises.
func scrape(t *testing.T, targets []*scraped) {
	t.Helper()
	for _, target := range targets {
		var text string
		framework.Eventually(t, fmt.Sprintf("%s to serve %q", target.Labels["job"], target.promises), func(ctx context.Context) (err error) {
			if text, err = target.read(ctx); err != nil {
				return err
			}
			for _, promised := range target.promises {
				if !strings.Contains(text, promised) {
					return fmt.Errorf("there is no %s", promised)
				}
			}
			return nil
		})
		target.Texts = append(target.Texts, text)
	}
}

// ask has hack/promtool ask the queries.
func ask(t *testing.T, targets []*scraped) {
	t.Helper()
	content, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "served.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-C", filepath.Join(framework.Root(t), "hack", "promtool"), "-count=1", "-v", "-run", "^TestServed$")
	cmd.Env = append(os.Environ(), "SERVED_METRICS="+file, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestServed ") {
		t.Errorf("%v\n%s", err, out)
	}
}
