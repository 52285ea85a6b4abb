package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// seen is what is read of can-see.
type seen struct {
	Verdict  string
	Problems []struct{ Message string }
	Reviewed bool
	Sets     []struct {
		Name                  string
		Clusters, See, Change []string
		Read, Join            bool
	}
	Grants []struct{ Binding string }
	Notes  []string
}

// TestPluginAccess gives teams their sets with what the plugin prints, and has it show who
// sees what, in both modes: roles and bindings are those of a real API server.
func TestPluginAccess(t *testing.T) {
	t.Parallel()
	t.Run("independent", func(t *testing.T) {
		registry, authority, admin := independent(t)
		testPluginAccess(t, plugin{t, registry.Kubeconfig(t, authority.Issue("root", admins))}, admin)
	})
	t.Run("aggregated", func(t *testing.T) {
		host, _ := framework.StartAggregated(t, newest)
		framework.Create(t, framework.HostClient(t, host.Config), shippedRoles(t)...)
		p := plugin{t, host.Kubeconfig("root", "system:masters")}
		testPluginAccess(t, p, host.Config)
		// kube-apiserver is the reference: for each form of a rule, its verdict is the plugin's.
		testPluginAgrees(t, p, host.Config)
	})
}

func testPluginAccess(t *testing.T, p plugin, admin *rest.Config) {
	s := setsOf(t, admin)
	s.make(t, "payments", "search")
	for name, set := range map[string]string{"east": "payments", "west": "search", "lone": ""} {
		if _, err := s.put(t.Context(), name, set); err != nil {
			t.Fatal(err)
		}
	}
	client := clientset(t, admin)
	for range 2 {
		applyGrant(t, p, client, "payments", "--viewer", "--group", "team-payments", "--group", "https://issuer.example/teams#1")
	}
	applyGrant(t, p, client, "payments", "--endpoint-editor", "--user", "ann")
	applyGrant(t, p, client, "search", "--editor", "--service-account", "ci:deployer")
	if _, warned := p.run(0, "", "grant", "none", "--viewer", "--group=g"); !strings.Contains(warned, "has no ClusterSet none") {
		t.Errorf("a set that is not there: %s", warned)
	}

	for _, test := range []struct{ args, want, binding string }{
		{"--subject bob --subject-group team-payments", "payments read=true [get list watch] [] false; search read=false [] [] false", "clusterregistry:set:payments:viewer:group:team-payments"},
		{"--subject bob --subject-group https://issuer.example/teams#1", "payments read=true [get list watch] [] false; search read=false [] [] false", ""},
		{"--subject ann", "payments read=true [get list watch] [create update patch delete deletecollection] true; search read=false [] [] false", "clusterregistry:gate:endpoint-editor:user:ann"},
		{"--subject system:serviceaccount:ci:deployer", "payments read=false [] [] false; search read=true [get list watch] [create update patch delete deletecollection] true", "clusterregistry:gate:editor:serviceaccount:ci:deployer"},
		{"--subject eve", "payments read=false [] [] false; search read=false [] [] false", ""},
	} {
		p.sees(0, test.args, func(got seen) bool {
			// In an independent registry, whoever passes the gate reads all sets, not their clusters.
			brief := got.brief()
			return (brief == test.want || brief == strings.ReplaceAll(test.want, "read=false []", "read=true []")) &&
				(test.binding == "" || slices.ContainsFunc(got.Grants, func(g struct{ Binding string }) bool { return g.Binding == test.binding }))
		})
	}
	if err := client.RbacV1().ClusterRoleBindings().Delete(t.Context(), "clusterregistry:gate:endpoint-editor:user:ann", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.sees(4, "--subject ann", func(got seen) bool {
		return len(got.Problems) == 2 && strings.Contains(got.Problems[0].Message, "the decision is there (get on clustersets/clusters), and the gate is not")
	})
	p.sees(0, "", func(got seen) bool {
		return strings.HasPrefix(got.Verdict, "root sees all clusters (3), changes all")
	})
}

// brief is what can-see says of each set.
func (s seen) brief() string {
	var out []string
	for _, set := range s.Sets {
		out = append(out, fmt.Sprintf("%s read=%t %v %v %t", set.Name, set.Read, set.See, set.Change, set.Join))
	}
	return strings.Join(out, "; ")
}

// sees expects what can-see shows, and that RBAC explains it. What was given a moment ago
// may be unknown to a server for a moment.
func (p plugin) sees(code int, args string, expected func(seen) bool) {
	p.t.Helper()
	framework.Eventually(p.t, "can-see "+args, func(context.Context) error {
		out, said, got := p.start("", append([]string{"can-see", "-o", "json"}, strings.Fields(args)...)...)
		shown := seen{}
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			return fmt.Errorf("%w: exits with %d: %s", err, got, said)
		}
		other := slices.ContainsFunc(shown.Notes, func(note string) bool { return strings.Contains(note, "other than RBAC") })
		if got != code || other || !expected(shown) {
			return fmt.Errorf("exits with %d: %s", got, out)
		}
		return nil
	})
}

// applyGrant applies what the plugin prints: what is there already must be the same.
func applyGrant(t *testing.T, p plugin, client kubernetes.Interface, args ...string) {
	t.Helper()
	printed, _ := p.run(0, "", append([]string{"grant"}, args...)...)
	for document := range strings.SplitSeq(printed, "\n---\n") {
		var err error
		role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
		if strings.Contains(document, "kind: ClusterRoleBinding\n") {
			if err = yaml.UnmarshalStrict([]byte(document), binding); err == nil {
				_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
			}
		} else if err = yaml.UnmarshalStrict([]byte(document), role); err == nil {
			_, err = client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%v: %s", err, document)
		}
	}
}

// testPluginAgrees gives a user each form of a rule, and expects that the plugin explains
// every answer of kube-apiserver.
func testPluginAgrees(t *testing.T, p plugin, admin *rest.Config) {
	client := clientset(t, admin).RbacV1()
	for i, test := range []struct {
		groups, resources, verbs string
		names                    []string
		code                     int
	}{
		{"*", "*/clusters", "get", nil, 4},
		{v1beta1.GroupName, "clustersets/*", "*", nil, 0},
		{v1beta1.GroupName, "*", "get", []string{"search"}, 4},
		{v1beta1.GroupName, "clustersets/join", "*", []string{"*", "payments"}, 0},
		{v1beta1.GroupName, "clustersets/clusters", "delete", []string{""}, 4},
		{"", "*", "*", nil, 0},
		{v1beta1.GroupName, "clusters", "create", nil, 0},
		{v1beta1.GroupName, "clusters/*", "*", nil, 0},
	} {
		name := fmt.Sprintf("form-%d", i)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{test.groups}, Resources: []string{test.resources}, Verbs: []string{test.verbs}, ResourceNames: test.names}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}
		if _, err := client.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.sees(test.code, "--subject "+name, func(got seen) bool { return got.Reviewed })
	}
}
