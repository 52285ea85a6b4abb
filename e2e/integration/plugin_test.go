package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// plugin is kubectl-registry for the user of one kubeconfig.
type plugin struct {
	t          *testing.T
	kubeconfig string
}

// run returns what the plugin prints; the test fails unless it exits with a code.
func (p plugin) run(code int, stdin string, args ...string) (stdout, stderr string) {
	p.t.Helper()
	stdout, stderr, got := p.start(stdin, args...)
	if got != code {
		p.t.Fatalf("%q exits with %d, want %d: %s\n%s", args, got, code, stderr, stdout)
	}
	return stdout, stderr
}

// start returns what the plugin prints and exits with.
func (p plugin) start(stdin string, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(framework.Root(p.t), "bin", "kubectl-registry"), append([]string{"--kubeconfig=" + p.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+p.t.TempDir(), "KUBECONFIG=")
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("start the plugin: %v; \"make build\" builds it", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// tunnels starts a proxy that leads to members by names that only it knows, since a
// member at a loopback address is none for others. It returns its URL.
func tunnels(t *testing.T, members map[string]string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // it ends with the test
		address, known := members[r.Host]
		if r.Method != http.MethodConnect || !known {
			http.Error(w, "no such member", http.StatusBadGateway)
			return
		}
		out, err := new(net.Dialer).DialContext(r.Context(), "tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		in, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// members returns a kubeconfig with a context for each host, by its name, through a
// proxy.
func members(t *testing.T, hosts map[string]*framework.Host) string {
	t.Helper()
	addresses := map[string]string{}
	out := clientcmdapi.NewConfig()
	for name, host := range hosts {
		own, err := clientcmd.LoadFromFile(host.Kubeconfig("root", "system:masters"))
		if err != nil {
			t.Fatal(err)
		}
		context := own.Contexts[own.CurrentContext]
		cluster := own.Clusters[context.Cluster]
		addresses[name+".test:6443"] = strings.TrimPrefix(cluster.Server, "https://")
		cluster.Server, cluster.TLSServerName = "https://"+name+".test:6443", "localhost"
		out.Clusters[name], out.AuthInfos[name], out.Contexts[name] = cluster, own.AuthInfos[context.AuthInfo], &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	proxy := tunnels(t, addresses)
	for name := range hosts {
		out.Clusters[name].ProxyURL = proxy
	}
	path := filepath.Join(t.TempDir(), "members")
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// testPlugin lets a person enter clusters behind a proxy in a registry with
// kubectl-registry, use them through the kubeconfig that it makes, and move them to another
// registry.
func testPlugin(t *testing.T, hosts map[string]*framework.Host) {
	registry, authority, config := independent(t)
	known := members(t, hosts)
	p := plugin{t, registry.Kubeconfig(t, authority.Issue("root", admins))}
	clusters := betaOf(t, config)
	east := testJoin(t, p, hosts["east"], known, config)

	// A script in the place of the AWS CLI prints a token of the member.
	east.Spec.Access = []v1beta1.Access{{Name: "users", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{
		APIVersion: "client.authentication.k8s.io/v1beta1", Command: "aws", Args: []string{"eks", "get-token", "--cluster-name", "east"},
	}}}
	if _, err := clusters.Update(t.Context(), east, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("export and import", func(t *testing.T) {
		other, authority, _ := independent(t)
		q := plugin{t, other.Kubeconfig(t, authority.Issue("root", admins))}
		before, _ := p.run(0, "", "export", "--with-status")
		q.run(0, before, "import", "--with-status", "-f", "-")
		after, _ := q.run(0, "", "export", "--with-status")
		if after != before || !strings.Contains(after, "kubernetes: "+newest) {
			t.Errorf("the other registry has\n%s\nwant\n%s", after, before)
		}
		report, _ := q.run(0, before, "import", "-f", "-", "-o", "json")
		if strings.Count(report, `"result": "same"`) != 2 {
			t.Errorf("again, it reports %s", report)
		}
	})
	t.Run("kubeconfig", func(t *testing.T) { testFleet(t, plugin{t, p.kubeconfig}, hosts) })
}

// testJoin joins the clusters of a kubeconfig, and returns east as the registry has it.
func testJoin(t *testing.T, p plugin, host *framework.Host, known string, config *rest.Config) *v1beta1.Cluster {
	t.Helper()
	join := func(code int, name, context string, more ...string) (string, string) {
		t.Helper()
		return p.run(code, "", append([]string{"join", name, "--cluster-kubeconfig", known, "--cluster-context", context}, more...)...)
	}
	system, err := clientset(t, host.Config).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dry, _ := join(0, "east", "east", "--dry-run=server", "-o", "json")
	out, _ := join(0, "east", "east", "--label", "region=eu", "-o", "json")
	made := &v1beta1.Cluster{}
	if err := json.Unmarshal([]byte(out), made); err != nil {
		t.Fatal(err)
	}
	endpoint := made.Spec.Endpoints[0]
	if made.Spec.ID != string(system.UID) || made.Status.Version.Kubernetes != newest || endpoint.URL != "https://east.test:6443" || endpoint.TLSServerName != "localhost" ||
		!bytes.Equal(endpoint.CABundle, host.Config.CAData) || !strings.Contains(dry, string(system.UID)) {
		t.Errorf("the registry has %+v", made)
	}
	if out, _ := join(0, "east", "east"); out != "cluster.clusterregistry.k8s.io/east unchanged\n" {
		t.Errorf("joined again: %s", out)
	}
	again, err := betaOf(t, config).Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || again.ResourceVersion != made.ResourceVersion {
		t.Errorf("joining again has changed it: %v, %+v", err, again)
	}
	if _, text := join(3, "east", "west"); !strings.Contains(text, `the name "east" belongs to another cluster: in the registry it is id `+made.Spec.ID) {
		t.Errorf("another cluster: %s", text)
	}
	if _, text := join(3, "other", "east"); !strings.Contains(text, `is in the registry already, as "east" (id `+made.Spec.ID) {
		t.Errorf("another name: %s", text)
	}
	join(0, "west", "west", "--label", "region=us")
	return again
}
