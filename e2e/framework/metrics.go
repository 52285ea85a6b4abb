package framework

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// metricsPort is where the operator serves its metrics.
	metricsPort = 8443
	// serverPort is where a registry's servers serve theirs, and all else.
	serverPort = 6443
	// etcdPort is where etcd's members serve theirs, to anyone.
	etcdPort = 2381
)

// Metrics reads metrics as a scraper does, with a token of a service account that
// may do what manifests/monitoring grants, and no more.
type Metrics struct {
	env   *Env
	token string
}

// NewMetrics makes the service account, in the test's namespace.
func (e *Env) NewMetrics() *Metrics {
	e.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "scraper"}}
	e.Create(account)
	name := e.Namespace + ":scraper"
	content, err := os.ReadFile(filepath.Join(Root(e.t), "manifests", "monitoring", "clusterrole.yaml"))
	if err != nil {
		e.t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(content, role); err != nil {
		e.t.Fatal(err)
	}
	role.Name = name // the test's own
	for _, object := range []client.Object{
		role,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: account.Name}}},
	} {
		if err := e.Client.Create(e.t.Context(), object); err != nil {
			e.t.Fatal(err)
		}
		e.t.Cleanup(func() {
			if err := client.IgnoreNotFound(e.Client.Delete(context.Background(), object)); err != nil {
				e.t.Error(err)
			}
		})
	}
	request, err := e.Kubernetes.CoreV1().ServiceAccounts(e.Namespace).CreateToken(e.t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return &Metrics{env: e, token: request.Status.Token}
}

// Read returns all samples of the operator's leader now, by name with labels.
func (m *Metrics) Read(ctx context.Context) (map[string]float64, error) {
	text, err := m.leader(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), "} ")
		if text == "" {
			name, text, _ = strings.Cut(lines.Text(), " ")
		}
		if value, err := strconv.ParseFloat(text, 64); err == nil && !strings.HasPrefix(name, "#") {
			out[name] = value
		}
	}
	return out, lines.Err()
}

// Families returns all metrics of the operator's leader now, by name.
func (m *Metrics) Families(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	return parse(m.leader(ctx))
}

// ServerFamilies returns all metrics of a server of an aggregated registry now,
// by name. The server is named by its pod.
func (m *Metrics) ServerFamilies(ctx context.Context, pod string) (map[string]*dto.MetricFamily, error) {
	return parse(m.scrape(ctx, m.env.Namespace, pod, serverPort, "https"))
}

// EtcdFamilies returns all metrics of an etcd member now, by name. The member is
// named by its pod.
func (m *Metrics) EtcdFamilies(ctx context.Context, pod string) (map[string]*dto.MetricFamily, error) {
	return parse(m.scrape(ctx, m.env.Namespace, pod, etcdPort, "http"))
}

func parse(text []byte, err error) (map[string]*dto.MetricFamily, error) {
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

func (m *Metrics) leader(ctx context.Context) ([]byte, error) {
	leader, err := m.env.OperatorLeader(ctx)
	if err != nil {
		return nil, err
	}
	return m.scrape(ctx, OperatorNamespace, leader.Name, metricsPort, "https")
}

func (m *Metrics) scrape(ctx context.Context, namespace, pod string, port int, scheme string) (text []byte, err error) {
	err = m.env.Forward(ctx, namespace, pod, port, func(address string) (err error) {
		text, err = m.get(ctx, scheme+"://"+address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the metrics of pod %s: %w", pod, err)
	}
	return text, nil
}

func (m *Metrics) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true} //nolint:gosec // self-signed
	response, err := (&http.Client{Transport: insecure}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s", response.Status)
	}
	return io.ReadAll(response.Body)
}

// Sum adds the samples whose name with labels contains all the given texts.
func Sum(samples map[string]float64, texts ...string) (sum float64) {
next:
	for name, value := range samples {
		for _, text := range texts {
			if !strings.Contains(name, text) {
				continue next
			}
		}
		sum += value
	}
	return sum
}
