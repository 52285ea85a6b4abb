package framework

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metricsPort is where the operator serves its metrics.
const metricsPort = 8443

// Metrics reads the metrics of the operator's leader as a scraper does, with a
// token of a service account that may.
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
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}},
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

// Read returns all samples of the leader now, by name with labels.
func (m *Metrics) Read(ctx context.Context) (map[string]float64, error) {
	lease := &coordinationv1.Lease{}
	if err := m.env.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: operatorName}, lease); err != nil {
		return nil, err
	}
	leader, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	var out map[string]float64
	err := m.env.Forward(ctx, OperatorNamespace, leader, metricsPort, func(address string) (err error) {
		out, err = m.scrape(ctx, address)
		return err
	})
	return out, err
}

func (m *Metrics) scrape(ctx context.Context, address string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
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
		return nil, fmt.Errorf("the operator's metrics: %s", response.Status)
	}
	out := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
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
