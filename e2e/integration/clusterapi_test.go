package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// importer is the controller as it brings clusters of Cluster API from a real
// kube-apiserver with Cluster API's own CRD into a real registry. On both sides it has the
// rights that docs/reference/controller.md names, and no others.
type importer struct {
	t      *testing.T
	host   *framework.Host
	etcd   *framework.Etcd
	client client.Client

	clusters typed.ClusterInterface
	// flags lead to both sides.
	flags []string
	*framework.Controller
}

const importerUser = "importer"

// importerGrants are what entries get by the namespace of their Cluster: those of "team-b" what
// looks like the same from elsewhere.
const importerGrants = `{"accessTemplates": [
	{"namespaces": ["team-b"], "hosts": ["*.team-b.example.com"], "access": [{"name": "login", "exec": {"command": "login-b"}}]},
	{"namespaces": ["team-a"], "matchLabels": {"example.com/tier": "gold"}, "hosts": ["*.team-a.example.com"], "access": [
		{"name": "login", "exec": {"command": "login", "args": ["--cluster={namespace}/{name}"]}}, {"name": "secretreader", "provider": {}}]}],
	"clusterSets": [{"namespace": "team-a", "clusterSet": "gold"}]}`

// newImporter prepares both sides: the registry "hub" in the namespace "registries", and
// the namespaces "team-a", which lets it in, and "team-b", which doesn't.
func newImporter(t *testing.T) *importer {
	t.Helper()
	host := framework.StartHostWith(t, newest, map[string]string{"authorization-mode": "RBAC"})
	etcd := framework.StartEtcd(t, 1)
	registry, clients, config := independentOn(t, etcd, "--guarded-fields=Enforce")
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(host.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	i := &importer{t: t, host: host, etcd: etcd, client: c, clusters: betaOf(t, config)}
	i.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "registries"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{contract.NamespaceLabel("hub"): "registries"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b"}})
	i.create(granted("registries",
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}})...)
	for _, namespace := range []string{"team-a", "team-b"} {
		i.create(granted(namespace,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}})...)
	}
	i.grantInRegistry(config)
	grants := filepath.Join(t.TempDir(), "grants.json")
	if err := os.WriteFile(grants, []byte(importerGrants), 0o600); err != nil {
		t.Fatal(err)
	}
	i.flags = []string{"--kubeconfig=" + registry.Kubeconfig(t, clients.Issue(importerUser, nil)), "--host-kubeconfig=" + host.Kubeconfig(importerUser), "--namespace=registries",
		"--registry-name=hub", "--cluster-api", "--cluster-api-namespaces=team-a,team-b", "--cluster-api-period=1s", "--cluster-api-labels=env,example.com/*", "--cluster-api-grants-file=" + grants}
	return i
}

// grantInRegistry gives the controller its rights in the registry, and makes the set that is
// granted.
func (i *importer) grantInRegistry(config *rest.Config) {
	i.t.Helper()
	rbac, group := clientset(i.t, config).RbacV1(), []string{"clusterregistry.k8s.io"}
	_, err := rbac.ClusterRoles().Create(i.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: importerUser}, Rules: []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{APIGroups: group, Resources: []string{"clusters/status"}, Verbs: []string{"patch"}},
		{APIGroups: group, Resources: []string{"clusters/endpoints", "clusters/identity"}, Verbs: []string{"update"}},
		{APIGroups: group, Resources: []string{"clustersets/join"}, Verbs: []string{"create"}},
	}}, metav1.CreateOptions{})
	if err == nil {
		_, err = rbac.ClusterRoleBindings().Create(i.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: importerUser},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: importerUser}, Subjects: importing()}, metav1.CreateOptions{})
	}
	if err != nil {
		i.t.Fatal(err)
	}
	registry, err := versioned.NewForConfig(config)
	if err == nil {
		_, err = registry.ClusterregistryV1beta1().ClusterSets().Create(i.t.Context(), &v1beta1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}, metav1.CreateOptions{})
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

func importing() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: importerUser}}
}

// granted are a Role and its binding, for the controller in a namespace.
func granted(namespace string, rules ...rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: importerUser}
	return []client.Object{&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: importerUser}, Subjects: importing()}}
}

func (i *importer) create(objects ...client.Object) {
	i.t.Helper()
	for _, object := range objects {
		if err := i.client.Create(i.t.Context(), object); err != nil {
			i.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// start starts the controller with more flags.
func (i *importer) start(flags ...string) {
	i.t.Helper()
	i.Controller = framework.StartController(i.t, append(append([]string{}, i.flags...), flags...)...)
}

// install installs Cluster API's CRD, and waits until it is served.
func (i *importer) install(change func(*apiextensionsv1.CustomResourceDefinition)) {
	i.t.Helper()
	crd := framework.ClusterAPICRD(i.t)
	if change != nil {
		change(crd)
	}
	i.create(crd)
	i.awaitServed()
}

// awaitServed waits until some version of Clusters can be listed.
func (i *importer) awaitServed() {
	i.t.Helper()
	framework.Eventually(i.t, "Cluster API to be served", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := i.client.Get(ctx, types.NamespacedName{Name: "clusters.cluster.x-k8s.io"}, crd); err != nil {
			return err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%+v", crd.Status.Conditions)
	})
}

// provision makes a Cluster as a person does, and writes what Cluster API's controllers
// write while they provision it.
func (i *importer) provision(namespace, name string) *clusterv1.Cluster {
	i.t.Helper()
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"env": "prod", "team": "a"}, Finalizers: []string{clusterv1.ClusterFinalizer}},
		Spec:       clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "standard"}, Version: "v1.37.1"}},
	}
	framework.Eventually(i.t, "the Cluster "+name+" to be made", func(ctx context.Context) error { return i.client.Create(ctx, c) })
	i.change(c, func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: name + "." + namespace + ".example.com", Port: 6443}
	})
	i.report(c, metav1.ConditionTrue)
	return c
}

// report writes the status of a Cluster.
func (i *importer) report(c *clusterv1.Cluster, available metav1.ConditionStatus) {
	i.t.Helper()
	now := metav1.Now().Rfc3339Copy()
	c.Status.Phase, c.Status.ObservedGeneration = "Provisioned", c.Generation
	c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: []clusterv1.StatusVersion{{Version: "v1.37.0", Replicas: 3}}}
	c.Status.Conditions = nil
	for kind, is := range map[string]metav1.ConditionStatus{"Available": available, "InfrastructureReady": metav1.ConditionTrue, "Paused": metav1.ConditionFalse} {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: "Is" + string(is), ObservedGeneration: c.Generation, LastTransitionTime: now})
	}
	if err := i.client.Status().Update(i.t.Context(), c); err != nil {
		i.t.Fatal(err)
	}
}

// change changes a Cluster, as it is now.
func (i *importer) change(c *clusterv1.Cluster, change func(*clusterv1.Cluster)) {
	i.t.Helper()
	if err := i.client.Get(i.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		i.t.Fatal(err)
	}
	change(c)
	if err := i.client.Update(i.t.Context(), c); err != nil {
		i.t.Fatal(err)
	}
}

// destroy deletes a Cluster, whose finalizer Cluster API's controller takes off.
func (i *importer) destroy(c *clusterv1.Cluster) {
	i.t.Helper()
	if err := i.client.Delete(i.t.Context(), c); err != nil {
		i.t.Fatal(err)
	}
	i.finalize(c)
}

func (i *importer) finalize(c *clusterv1.Cluster) {
	i.t.Helper()
	if err := i.client.Patch(i.t.Context(), c, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))); err != nil && !apierrors.IsNotFound(err) {
		i.t.Fatal(err)
	}
}

// moveAway does what clusterctl move does with a Cluster in the cluster that it leaves.
func (i *importer) moveAway(c *clusterv1.Cluster) {
	i.t.Helper()
	i.change(c, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	if err := i.client.Patch(i.t.Context(), c, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/annotations","value":{"clusterctl.cluster.x-k8s.io/delete-for-move":""}}]`))); err != nil {
		i.t.Fatal(err)
	}
	i.destroy(c)
}

// label labels the namespace team-b; the empty value takes the label away.
func (i *importer) label(value string) {
	i.t.Helper()
	patch := map[string]any{"metadata": map[string]any{"labels": map[string]any{contract.NamespaceLabel("hub"): value}}}
	if value == "" {
		patch["metadata"] = map[string]any{"labels": map[string]any{contract.NamespaceLabel("hub"): nil}}
	}
	content, err := json.Marshal(patch)
	if err == nil {
		err = i.client.Patch(i.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b"}}, client.RawPatch(types.MergePatchType, content))
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

// awaitState waits until the function is in a state, with texts in its message.
func (i *importer) awaitState(state contract.FunctionState, says ...string) {
	i.t.Helper()
	framework.Eventually(i.t, fmt.Sprintf("clusterAPI to be %s: %q", state, says), func(ctx context.Context) error {
		lease, err := clientset(i.t, i.host.Config).CoordinationV1().Leases("registries").Get(ctx, "clusterregistry-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status contract.ControllerStatus
		if err := json.Unmarshal([]byte(lease.Annotations[contract.ControllerStatusAnnotation]), &status); err != nil {
			return err
		}
		is := status.Functions[contract.ClusterAPIFunction]
		for _, text := range says {
			if !strings.Contains(is.Message, text) {
				return fmt.Errorf("%q is missing in %+v", text, is)
			}
		}
		if lease.Spec.HolderIdentity == nil || status.Holder != *lease.Spec.HolderIdentity || is.State != state {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
}

// await waits until an entry's condition Joined is so.
func (i *importer) await(name string, status metav1.ConditionStatus, reason string) *v1beta1.Cluster {
	i.t.Helper()
	return awaitCondition(i.t, i.clusters, name, "Joined", status, reason)
}

// awaitEntry waits until an entry is as a function says, which returns why it isn't.
func (i *importer) awaitEntry(name, what string, check func(*v1beta1.Cluster) error) {
	i.t.Helper()
	framework.Eventually(i.t, name+" to have "+what, func(ctx context.Context) error {
		entry, err := i.clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return check(entry)
	})
}

// awaitGone waits until there is no entry of a name.
func (i *importer) awaitGone(name string) {
	i.t.Helper()
	framework.Eventually(i.t, name+" to be deleted", func(ctx context.Context) error {
		entry, err := i.clusters.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%+v, %w", entry, err)
	})
}
