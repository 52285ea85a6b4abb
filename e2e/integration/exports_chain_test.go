package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// chain leads from a Cluster of Cluster API in the namespace "capi" to a Secret of Argo CD in the
// namespace "gitops". Its API server is the host's own, behind a load balancer with a certificate of
// its own.
type chain struct {
	*hub
	at *url.URL
	ca []byte
	// export is what the spec of the registry has, and flags what its clusterAPI becomes.
	export string
	flags  []string
	// stored is the credential that Cluster API keeps beside the Cluster.
	stored  string
	cluster *clusterv1.Cluster
}

// newChain prepares all that an administrator sets up once, for every cluster that comes later.
func newChain(h *hub) *chain {
	h.t.Helper()
	c := &chain{hub: h, stored: "credential-of-cluster-api"}
	to, err := url.Parse(h.host.Config.Host)
	h.must(err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(h.host.Config.CAData) {
		h.t.Fatal("the host cluster has no CA")
	}
	at, ca := framework.StartMemberOf(h.t, &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
	})
	c.ca = ca
	c.at, err = url.Parse(at)
	h.must(err)
	for _, namespace := range []string{"capi", "gitops"} {
		h.must(h.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{registryMark: "default"}}}))
	}
	h.bind("capi", "cluster-api", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}})
	h.bind("gitops", "secrets", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})

	// The program by which Argo CD signs in, which knows this one cluster.
	program := filepath.Join(h.t.TempDir(), "sso")
	credential, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]string{"token": tokenOf(h.t, h.host)}})
	h.must(err)
	h.must(os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\n[ \"$*\" = --cluster=capi/alpha ] || exit 1\necho '%s'\n", credential), 0o700)) //nolint:gosec // it is a program
	c.export = fmt.Sprintf(`{namespace: gitops, format: ArgoCDSecret, labels: [tier], selector: {matchLabels: {from: capi}}, signIn: [{provider: sso, hosts: [%s/32], exec: {command: %s, args: ["--cluster={config.cluster}"]}}]}`, c.at.Hostname(), program)
	grants := filepath.Join(h.t.TempDir(), "grants.json")
	h.must(os.WriteFile(grants, fmt.Appendf(nil, `{"accessTemplates": [{"namespaces": ["capi"], "hosts": ["%s/32"], "access": [{"name": "sso", "provider": {"config": {"cluster": "{namespace}/{name}"}}}]}]}`, c.at.Hostname()), 0o600))
	c.flags = []string{"--cluster-api", "--cluster-api-namespaces=capi", "--cluster-api-period=1s", "--cluster-api-labels=from,tier", "--cluster-api-grants-file=" + grants,
		"--cluster-api-deletion-policy=Delete", "--cluster-api-grace-period=0s"}
	return c
}

// testComes provisions a cluster as Cluster API does, and expects that Argo CD reaches it by the
// Secret that appears.
func (c *chain) testComes() {
	t := c.t
	t.Helper()
	c.must(c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "capi", Name: "alpha-ca"}, Data: map[string]string{"ca.crt": string(c.ca)}}))
	c.cluster = &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capi", Name: "alpha", Labels: map[string]string{"from": "capi", "tier": "team"}, Annotations: map[string]string{"clusterregistry.k8s.io/ca-configmap": "alpha-ca"}},
		Spec:       clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "standard"}, Version: "v1.37.1"}},
	}
	c.must(c.Create(t.Context(), c.cluster))
	// From here on, Cluster API's controllers act.
	c.must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "capi", Name: "alpha-kubeconfig"}, Type: clusterv1.ClusterSecretType, StringData: map[string]string{"value": c.stored}}))
	port, err := strconv.Atoi(c.at.Port())
	c.must(err)
	c.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: c.at.Hostname(), Port: int32(port)} //nolint:gosec // a port
	c.must(c.Update(t.Context(), c.cluster))

	secret := &corev1.Secret{}
	framework.Eventually(t, "the Secret of the Cluster", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: "gitops", Name: "cluster-alpha"}, secret)
	})
	framework.Eventually(t, "the Secret to have its content", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil || len(secret.Data["config"]) > 0 {
			return err
		}
		return fmt.Errorf("it has %v", secret.Data)
	})
	if string(secret.Data["name"]) != "alpha" || secret.Labels["argocd.argoproj.io/secret-type"] != "cluster" || secret.Labels["tier"] != "team" {
		t.Errorf("Argo CD does not know the cluster by %+v", secret)
	}
	for key, value := range secret.Data {
		if bytes.Contains(value, []byte(c.stored)) {
			t.Errorf("%s has the credential of Cluster API", key)
		}
	}
	host, err := clientset(t, c.host.Config).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	c.must(err)
	reached, err := clientset(t, asArgoCD(t, secret)).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	c.must(err)
	for _, namespace := range reached.Items {
		if namespace.UID == host.UID {
			return
		}
	}
	t.Errorf("another cluster was reached: %v", reached.Items)
}

// asArgoCD is how Argo CD v3 connects by a cluster Secret: SecretToCluster in util/db/cluster.go, and
// RawRestConfig of its API types.
func asArgoCD(t *testing.T, secret *corev1.Secret) *rest.Config {
	t.Helper()
	var config struct {
		Exec *struct {
			Command    string   `json:"command"`
			Args       []string `json:"args"`
			APIVersion string   `json:"apiVersion"`
		} `json:"execProviderConfig"`
		TLS struct {
			Insecure bool   `json:"insecure"`
			CAData   []byte `json:"caData"`
		} `json:"tlsClientConfig"`
	}
	decoder := json.NewDecoder(bytes.NewReader(secret.Data["config"]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil || config.Exec == nil {
		t.Fatalf("%s: %v", secret.Data["config"], err)
	}
	return &rest.Config{
		Host: string(secret.Data["server"]), TLSClientConfig: rest.TLSClientConfig{Insecure: config.TLS.Insecure, CAData: config.TLS.CAData},
		ExecProvider: &clientcmdapi.ExecConfig{APIVersion: config.Exec.APIVersion, Command: config.Exec.Command, Args: config.Exec.Args, InteractiveMode: clientcmdapi.NeverExecInteractiveMode},
	}
}

// leave has Cluster API delete the Cluster.
func (c *chain) leave() {
	c.t.Helper()
	c.must(c.Delete(c.t.Context(), c.cluster))
}

// testGone expects that the Secret and the entry have gone with the Cluster.
func (c *chain) testGone() {
	c.t.Helper()
	framework.Eventually(c.t, "the Secret to go with the Cluster", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "gitops", Name: "cluster-alpha"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if _, err := c.clusters.Get(c.t.Context(), "alpha", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		c.t.Errorf("the entry is there: %v", err)
	}
}
