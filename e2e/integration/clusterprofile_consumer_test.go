package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestClusterProfileConsumer has a consumer that uses upstream's library and plugins, as they
// are released, list the namespaces of a second real kube-apiserver, of which it knows a
// published profile and the Secrets in its own namespace.
func TestClusterProfileConsumer(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.install()
	ca := framework.NewAuthority(t, "member-ca")
	serving := ca.Issue("member", nil, "member.test")
	member := framework.StartHostWith(t, newest, map[string]string{"tls-sni-cert-key": serving.Cert + "," + serving.Key})
	// A member on loopback is none for others: a proxy leads to it by a name.
	proxy := tunnels(t, map[string]string{"member.test:6443": strings.Trim(strings.TrimPrefix(member.Config.Host, "https:"), "/")})
	h.start(h.exports(`{namespace: default, format: ClusterProfile, providers: [secretreader, kubeconfig-secretreader]}`), "--health-allowed-proxies="+proxy)
	controller := func(name string, provider v1beta1.ProviderAccess) v1beta1.Access {
		return v1beta1.Access{Name: name, Audience: v1beta1.AudienceController, Provider: &provider}
	}
	h.enter("member", "gold", func(c *v1beta1.Cluster) {
		c.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", URL: "https://member.test:6443", CABundle: ca.PEM, ProxyURL: proxy}}
		c.Spec.Access = []v1beta1.Access{
			controller("token", v1beta1.ProviderAccess{Type: "secretreader"}),
			controller("kubeconfig", v1beta1.ProviderAccess{Type: "kubeconfig-secretreader", Config: map[string]string{"name": "member-kubeconfig", "key": "value", "namespace": "default"}}),
		}
	})
	h.secret("member", map[string][]byte{"token": []byte(tokenOf(t, member))})
	kubeconfig, err := os.ReadFile(member.Kubeconfig("consumer", "system:masters"))
	h.must(err)
	h.secret("member-kubeconfig", map[string][]byte{"value": kubeconfig})
	system, err := clientset(t, member.Config).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	h.must(err)
	profile := h.await("default", "member", "published", func(p *v1alpha1.ClusterProfile) bool { return len(p.Status.AccessProviders) == 2 })

	secrets := h.host.Kubeconfig("consumer", "system:masters") // by which the plugins read Secrets
	for _, plugin := range []string{"secretreader", "kubeconfig-secretreader"} {
		config, err := access.NewFromFile(providerFile(t, plugin, secrets))
		h.must(err)
		built, err := config.BuildConfigFromCP(profile)
		h.must(err)
		namespaces, err := clientset(t, built).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("with %s: %v", plugin, err)
			continue
		}
		found := false
		for _, ns := range namespaces.Items {
			found = found || ns.UID == system.UID
		}
		if !found {
			t.Errorf("with %s, another cluster was reached: %v", plugin, namespaces.Items)
		}
	}

	// An address that a consumer would not reach is not published.
	h.change("member", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "kubernetes" })
	profile = h.await("default", "member", "without providers", func(p *v1alpha1.ClusterProfile) bool { return len(p.Status.AccessProviders) == 0 })
	config, err := access.NewFromFile(providerFile(t, "secretreader", secrets))
	h.must(err)
	if built, err := config.BuildConfigFromCP(profile); err == nil {
		t.Errorf("a consumer connects to %s", built.Host)
	}
}

func (h *hub) secret(name string, data map[string][]byte) {
	h.t.Helper()
	h.must(h.Create(h.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: data}))
}

// tokenOf returns a token of a service account that may list namespaces.
func tokenOf(t *testing.T, host *framework.Host) string {
	t.Helper()
	token, _ := host.Tokens()
	rbac := clientset(t, host.Config).RbacV1()
	if _, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "consumers"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "consumers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "consumers"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// providerFile builds a plugin of upstream and writes the file by which a consumer finds it,
// and the plugin the kubeconfig.
func providerFile(t *testing.T, plugin, kubeconfig string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, plugin)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, inventory+"/plugins/"+plugin+"/cmd/plugin")
	build.Dir = framework.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", plugin, err, out)
	}
	content, err := json.Marshal(map[string]any{"providers": []any{map[string]any{"name": plugin, "execConfig": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": program, "provideClusterInfo": true,
		"env": []any{map[string]any{"name": "KUBECONFIG", "value": kubeconfig}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "providers.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestClusterProfilesKilled kills the controller while it writes, again and again, and then
// runs two at once, as after a split: in the end, each profile is as its cluster, and no one
// writes any more.
func TestClusterProfilesKilled(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.install()
	const clusters = 40
	name := func(i int) string { return fmt.Sprintf("c-%02d", i) }
	for i := range clusters {
		h.enter(name(i), "gold")
	}
	for _, after := range []int{50, 1, 7, 20, 39} {
		events := h.watch()
		controller := h.start(h.exports(`{namespace: default, format: ClusterProfile, providers: [secretreader]}`), "--leader-elect=false")
		for i := range clusters {
			h.say(name(i), fmt.Sprintf("v1.%d.0", after), "")
		}
		for seen := range after {
			select {
			case <-events:
			case <-time.After(5 * time.Minute):
				t.Fatalf("no more than %d writes", seen)
			}
		}
		controller.Kill()
	}
	one, two := h.start(h.exports(`{namespace: default, format: ClusterProfile, providers: [secretreader]}`), "--leader-elect=false"), h.start(h.exports(`{namespace: default, format: ClusterProfile, providers: [secretreader]}`), "--leader-elect=false")
	for i := range clusters {
		h.say(name(i), "v1.99.0", "")
	}
	for i := range clusters {
		h.await("default", name(i), "up to date", func(p *v1alpha1.ClusterProfile) bool { return p.Status.Version.Kubernetes == "v1.99.0" && whole(p) })
	}
	before := h.revisions()
	// Two changes of another profile, a second apart: a clock of the controllers' own.
	h.enter("clock", "gold")
	for _, version := range []string{"v1", "v2", "v3"} {
		h.say("clock", version, "")
		h.await("default", "clock", version, func(p *v1alpha1.ClusterProfile) bool { return p.Status.Version.Kubernetes == version })
	}
	after := h.revisions()
	delete(after, "clock")
	if !maps.Equal(before, after) {
		t.Errorf("in a steady fleet, resource versions went from %v to %v", before, after)
	}
	one.Stop()
	two.Stop()
}

// revisions are the resource versions of the profiles in the namespace default.
func (h *hub) revisions() map[string]string {
	h.t.Helper()
	list, out := &v1alpha1.ClusterProfileList{}, map[string]string{}
	h.must(h.List(h.t.Context(), list, client.InNamespace("default")))
	for _, p := range list.Items {
		out[p.Name] = p.ResourceVersion
	}
	return out
}

// watch returns the names of profiles that change from now on.
func (h *hub) watch() <-chan string {
	h.t.Helper()
	list := &v1alpha1.ClusterProfileList{}
	h.must(h.List(h.t.Context(), list, client.InNamespace("default")))
	ctx, cancel := context.WithCancel(h.t.Context())
	h.t.Cleanup(cancel)
	watcher, err := h.Watch(ctx, list, client.InNamespace("default"), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	h.must(err)
	out := make(chan string, 10000)
	go func() {
		for event := range watcher.ResultChan() {
			if p, ok := event.Object.(*v1alpha1.ClusterProfile); ok {
				out <- p.Name
			}
		}
	}()
	return out
}
