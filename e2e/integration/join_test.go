package integration

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// testJoins enters members in a registry from one kubeconfig with a context for each way
// in which they can be described, and some that are refused.
func testJoins(t *testing.T, members map[string]*fleetMember) {
	registry, authority, config := independent(t)
	p, clusters := plugin{t, registry.Kubeconfig(t, authority.Issue("root", admins))}, betaOf(t, config)
	known := clientcmdapi.NewConfig()
	for _, m := range members {
		m.enter(t, known)
	}
	// More than one CA, in a file that has other things besides.
	south := members["south"]
	bundle := string(south.ca.PEM) + content(t, south.serving.Key) + "a comment\n" + string(members["north"].ca.PEM)
	known.Clusters["south"].CertificateAuthorityData, known.Clusters["south"].CertificateAuthority = nil, written(t, "ca.crt", bundle)
	// A program of the person's own, which needs a variable and an argument.
	secret := token(t, members["east"].Host)
	login := program(t, "login", `[ "$*" = "--cluster east" ] && [ "$LOGIN_PASSWORD" = geheim ] || { echo "you are not signed in" >&2; exit 1; }`+"\necho '"+credential("v1", secret)+"'\n")
	exec := &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: login, Args: []string{"--cluster", "east"}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		Env: []clientcmdapi.ExecEnvVar{{Name: "LOGIN_PASSWORD", Value: "geheim"}, {Name: "LOGIN_REGION", Value: "eu"}}}
	known.AuthInfos["east"] = &clientcmdapi.AuthInfo{Exec: exec}
	refuse(known, members)
	path := saved(t, known)
	join := func(code int, name string, args ...string) (string, string) {
		t.Helper()
		return p.run(code, "", append([]string{"join", name, "--cluster-kubeconfig", path, "--cluster-context"}, args...)...)
	}

	t.Run("refused", func(t *testing.T) { testRefusedJoins(t, join, clusters) })
	for name, m := range members {
		join(0, name, name)
		made, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := []v1beta1.Endpoint{{Name: "main", URL: m.url(t), CABundle: m.ca.PEM, TLSServerName: serverName}}
		if name == "south" {
			want[0].CABundle = append(want[0].CABundle, members["north"].ca.PEM...)
		}
		if got, wanted := marshaled(t, made.Spec), marshaled(t, v1beta1.ClusterSpec{ID: identityOf(t, m), Endpoints: want}); got != wanted {
			t.Errorf("%s is entered as\n%s\nwant\n%s", name, got, wanted)
		}
		if version := made.Status.Version.Kubernetes; version != newest || conditionOf(made, "IdentityVerified").Reason != "Joined" {
			t.Errorf("%s: version %q, %s", name, version, summary(made))
		}
		expectNoSecret(t, marshaled(t, made), secret)
	}
	// Only that the person wants it enters the program, by its name and without the variable.
	out, shown := join(0, "east", "east", "--with-access", "--yes", "-o", "json")
	for _, text := range []string{out, shown} {
		expectNoSecret(t, text, secret)
	}
	made := &v1beta1.Cluster{}
	if err := json.Unmarshal([]byte(out), made); err != nil {
		t.Fatal(err)
	}
	if len(made.Spec.Access) != 1 || made.Spec.Access[0].Exec.Command != filepath.Base(login) || len(made.Spec.Access[0].Exec.Env) != 1 || !strings.Contains(shown, "with LOGIN_REGION=eu") {
		t.Errorf("with access: %+v\n%s", made.Spec.Access, shown)
	}
}

// refuse adds contexts that can't join.
func refuse(known *clientcmdapi.Config, members map[string]*fleetMember) {
	add := func(name string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) {
		cluster, user := known.Clusters["north"].DeepCopy(), known.AuthInfos["north"].DeepCopy()
		change(cluster, user)
		known.Clusters[name], known.AuthInfos[name], known.Contexts[name] = cluster, user, &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	add("insecure", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil
	})
	add("loopback", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = members["north"].Config.Host })
	add("plain", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.Server = strings.Replace(c.Server, "https:", "http:", 1)
	})
	add("other-ca", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.CertificateAuthorityData = members["south"].ca.PEM
	})
	add("other-name", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "" })
	add("no-ca-file", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.CertificateAuthorityData, c.CertificateAuthority = nil, "/none/ca.crt"
	})
	add("proxy-password", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.ProxyURL = "http://ann:geheim@proxy.example:3128"
	})
	add("signed-out", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		*u = clientcmdapi.AuthInfo{Exec: known.AuthInfos["east"].Exec.DeepCopy()}
		u.Exec.Args = []string{"--cluster", "north"}
	})
	add("stranger", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		*u = clientcmdapi.AuthInfo{Token: "invented-geheim"}
	})
}

// testRefusedJoins expects that nothing is entered, with a reason and no secret.
func testRefusedJoins(t *testing.T, join func(int, string, ...string) (string, string), clusters typed.ClusterInterface) {
	for context, want := range map[string]struct {
		code int
		text string
	}{
		"insecure":       {3, `context "insecure" has insecure-skip-tls-verify`},
		"loopback":       {3, "say with --server which https URL other computers reach the cluster at"},
		"plain":          {3, "is not an https URL"},
		"other-ca":       {1, "its certificate is not signed by the CA in the kubeconfig"},
		"other-name":     {1, "set tls-server-name in the kubeconfig"},
		"no-ca-file":     {1, "/none/ca.crt: no such file"},
		"proxy-password": {3, "the proxy of context \"proxy-password\" is a URL with a user or password"},
		"signed-out":     {1, "exit code 1"},
		"stranger":       {1, "it does not accept the context's credentials: sign in to it again"},
		"none":           {2, `the kubeconfig has no context "none"`},
	} {
		if _, text := join(want.code, "refused", context); !strings.Contains(text, want.text) || strings.Contains(text, "geheim") {
			t.Errorf("%s: it says %s", context, text)
		}
	}
	if list, err := clusters.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("the registry has %v, %v", list, err)
	}
	// What --server says is entered, also where this computer does not reach it.
	out, text := join(0, "tunnel", "loopback", "--server", "https://north.example.com:6443", "--dry-run=server", "-o", "json")
	if !strings.Contains(out, `"url": "https://north.example.com:6443"`) || !strings.Contains(text, "note: that the cluster answers at https://north.example.com:6443 is not verified: ") {
		t.Errorf("with --server: %s\n%s", out, text)
	}
}

// expectNoSecret expects nothing of a credential in a text.
func expectNoSecret(t *testing.T, text, token string) {
	t.Helper()
	for _, secret := range []string{"geheim", "LOGIN_PASSWORD", token, "PRIVATE KEY"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in %s", secret, text)
		}
	}
}

func marshaled(t *testing.T, object any) string {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// identityOf returns the UID of a member's kube-system.
func identityOf(t *testing.T, m *fleetMember) string {
	t.Helper()
	system, err := clientset(t, m.Config).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}
