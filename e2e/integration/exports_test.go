package integration

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// document is a format whose objects are Secrets or ConfigMaps.
type document struct {
	format, namespace, resource string
	// kinds is what the operator's binding for it is named after.
	kinds string
	// run is what is run to sign in.
	run string
	// object is the name of what the cluster east has, and key where it has the address.
	object, key string
	// kind is that of an object which is not there yet.
	kind func() client.Object
	data func(client.Object) map[string]string
}

const runs = `exec: {command: /plugin, args: ["--cluster={name}"]}`

var documents = []document{
	{"ArgoCDSecret", "argocd", "secrets", "secrets", runs, "cluster-east", "server", secretKind, secretData},
	{"FluxConfigMap", "flux", "configmaps", "config-maps", "flux: {provider: generic}", "flux-east", "address", configMapKind, configMapData},
	{"Kubeconfig", "people", "configmaps", "config-maps", runs, "kubeconfig-east", "server", configMapKind, kubeconfigData},
}

func secretKind() client.Object { return &corev1.Secret{} }

func secretData(object client.Object) map[string]string {
	out := map[string]string{}
	for key, value := range object.(*corev1.Secret).Data {
		out[key] = string(value)
	}
	return out
}

func configMapKind() client.Object { return &corev1.ConfigMap{} }

func configMapData(object client.Object) map[string]string { return object.(*corev1.ConfigMap).Data }

// kubeconfigData is what a client finds in the kubeconfig.
func kubeconfigData(object client.Object) map[string]string {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(configMapData(object)["kubeconfig"]))
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return map[string]string{"server": config.Host}
}

// TestExports goes through the life of each format in a namespace of a real kube-apiserver, with
// a controller that has no more rights there than the format's role gives it.
func TestExports(t *testing.T) {
	t.Parallel()
	h := newHub(t, contract.ClusterAPIGroup)
	at, err := url.Parse(h.at)
	h.must(err)
	root := h.host.Kubeconfig("root", "system:masters")
	kubectl := framework.NewKubectl(t, newest, root)
	framework.KueueAPIs(t, kubectl)
	var exports []string
	for _, d := range documents {
		h.must(h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace, Labels: map[string]string{registryMark: "default"}}}))
		h.bind(d.namespace, d.kinds, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{d.resource}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
		exports = append(exports, fmt.Sprintf(`{namespace: %s, format: %s, labels: [tier], selector: {matchLabels: {tier: gold}}, signIn: [{provider: secretreader, hosts: [%s/32], %s}]}`, d.namespace, d.format, at.Hostname(), d.run))
	}
	// What someone else has made under the name of one of them stays.
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cluster-west", Namespace: "argocd"}, StringData: map[string]string{"server": "https://mine"}}
	h.must(h.Create(t.Context(), foreign))

	exports = append(exports, h.choosing(fmt.Sprintf("%s/32", at.Hostname())))
	capi, workers := newChain(h), newKueues(h, kubectl, root)
	exports = append(exports, capi.export, workers.export)
	left := h.leaveBehind()
	h.enter("east", "gold")
	h.enter("west", "gold")
	h.enter("feed", "iron")
	asked, flags := h.feed(fmt.Sprintf("%s/32", at.Hostname()))
	h.start(append(append(capi.flags, flags...), h.exports(exports...), "--cluster-selections=deploy:other=x", "--cluster-selections=kueue-system:kueue=worker")...)
	// What takes its time continues beside the rest.
	capi.testComes()
	capi.leave()
	workers.testNamed()
	h.testFeed(asked)
	for _, d := range documents {
		h.testDocument(d)
	}
	capi.testGone()
	h.testLeft(left)
	h.awaitState(contract.FunctionRunning, `are left alone: "cluster-west"`)
	h.must(h.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	if string(foreign.Data["server"]) != "https://mine" || len(foreign.Labels) > 0 {
		t.Errorf("what someone else has made was changed: %+v", foreign)
	}
	h.testChosen()
	workers.testWorkerLeft()
}

// leaveBehind makes what a controller has left that was stopped before the spec changed or a cluster
// was deleted, and what is like it and no one's, or another registry's. It returns each with
// whether it is to stay.
func (h *hub) leaveBehind() map[client.Object]bool {
	h.t.Helper()
	out := map[client.Object]bool{}
	for name, test := range map[string]struct {
		registry, format string
		stays            bool
	}{
		"of-a-format-of-before":             {"hub", "Kubeconfig", false},
		"of-a-format-of-another-registry":   {"other", "Kubeconfig", true},
		"flux-of-a-cluster-that-is-deleted": {"hub", "FluxConfigMap", false},
		"flux-of-another-registry":          {"other", "FluxConfigMap", true},
		"flux-of-no-format":                 {"hub", "", true},
	} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "flux", Labels: map[string]string{contract.NamespaceLabel(test.registry): "default"}}}
		if test.format != "" {
			object.Labels["exports.clusterregistry.io/format"] = test.format
		}
		h.must(h.Create(h.t.Context(), object))
		out[object] = test.stays
	}
	return out
}

// testLeft expects that of what was left behind, only what is not this registry's is still there.
func (h *hub) testLeft(left map[client.Object]bool) {
	h.t.Helper()
	for object, stays := range left {
		framework.Eventually(h.t, object.GetName()+" to be gone, unless it stays", func(ctx context.Context) error {
			err := h.Get(ctx, client.ObjectKeyFromObject(object), &corev1.ConfigMap{})
			if is := err == nil; client.IgnoreNotFound(err) == nil && is != stays {
				return fmt.Errorf("it is there: %t", is)
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// toSelect is what the controller may do where it acts on ClusterSelections.
var toSelect = []rbacv1.PolicyRule{
	{APIGroups: []string{operatorv1alpha1.GroupName}, Resources: []string{"clusterselections"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{operatorv1alpha1.GroupName}, Resources: []string{"clusterselections/status"}, Verbs: []string{"update"}},
}

// choosing makes the namespace "deploy", where the controller may act on ClusterSelections as well,
// and returns an export to it of what one of them chooses.
func (h *hub) choosing(hosts string) string {
	h.t.Helper()
	_, err := envtest.InstallCRDs(h.host.Config, envtest.CRDInstallOptions{MaxTime: framework.Patience, Paths: []string{filepath.Join(framework.Root(h.t), "manifests", "operator", "crd", "operator.clusterregistry.io_clusterselections.yaml")}})
	h.must(err)
	h.must(h.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "deploy", Labels: map[string]string{registryMark: "default"}}}))
	h.bind("deploy", "secrets", append(toSelect, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})...)
	return fmt.Sprintf(`{namespace: deploy, format: ArgoCDSecret, selection: first, signIn: [{provider: secretreader, hosts: [%s], %s}]}`, hosts, runs)
}

// testChosen has the one cluster of tier bronze that comes first published, where there is no
// ClusterSelection at first and at last. One that comes before it may not be seen there.
func (h *hub) testChosen() {
	h.t.Helper()
	for _, name := range []string{"all", "north", "south"} {
		h.enter(name, "bronze")
	}
	h.change("all", func(c *v1beta1.Cluster) { c.Labels["other"] = "y" })
	const absent = `ClusterSelection "first" of namespace "deploy" does not exist`
	h.awaitState(contract.FunctionRunning, absent)
	first := selection("first", "cluster.labels[?'tier'].orValue('') == 'bronze'")
	first.Namespace, first.Spec.Limit = "deploy", 1
	h.must(h.Create(h.t.Context(), first))
	h.awaitSecrets("cluster-north")
	h.change("north", func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" })
	h.awaitSecrets("cluster-south")

	h.must(h.Delete(h.t.Context(), first))
	h.awaitState(contract.FunctionRunning, absent)
	h.change("south", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = h.at + "/moved" })
	framework.Eventually(h.t, "what is published to follow its entry", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := h.Get(ctx, client.ObjectKey{Namespace: "deploy", Name: "cluster-south"}, secret); err != nil {
			return err
		}
		if server := string(secret.Data["server"]); server != h.at+"/moved" {
			return fmt.Errorf("it leads to %s", server)
		}
		return nil
	})
	h.awaitSecrets("cluster-south")
}

// awaitSecrets waits until the namespace "deploy" has these alone.
func (h *hub) awaitSecrets(want string) {
	h.t.Helper()
	framework.Eventually(h.t, "Secrets: "+want, func(ctx context.Context) error {
		list := &corev1.SecretList{}
		if err := h.List(ctx, list, client.InNamespace("deploy")); err != nil {
			return err
		}
		var got []string
		for _, secret := range list.Items {
			got = append(got, secret.Name)
		}
		if is := strings.Join(got, " "); is != want {
			return fmt.Errorf("they are %q", is)
		}
		return nil
	})
}

// testDocument changes an entry, and what is published of it, takes its access back and gives it
// again, and deletes it.
func (h *hub) testDocument(d document) {
	h.t.Helper()
	h.change("east", func(c *v1beta1.Cluster) { c.Labels["tier"] = "gold" })
	is := func(what string, check func(client.Object) bool) {
		h.t.Helper()
		framework.Eventually(h.t, fmt.Sprintf("%s/%s: %s", d.namespace, d.object, what), func(ctx context.Context) error {
			object := d.kind()
			if err := h.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.object}, object); err != nil {
				return err
			}
			if !check(object) {
				return fmt.Errorf("it has %q and the labels %v", d.data(object), object.GetLabels())
			}
			return nil
		})
	}
	leads := func(object client.Object) bool { return d.data(object)[d.key] == h.at+"/east" }
	gone := func(what string) {
		h.t.Helper()
		framework.Eventually(h.t, fmt.Sprintf("%s/%s to be gone: %s", d.namespace, d.object, what), func(ctx context.Context) error {
			if err := h.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.object}, d.kind()); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is not: %w", err)
			}
			return nil
		})
	}
	is("made", func(object client.Object) bool { return leads(object) && object.GetLabels()["tier"] == "gold" })
	is("to go with the binding", h.goesWith(h.binding(d)))
	h.change("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = h.at + "/moved" })
	is("moved", func(object client.Object) bool { return d.data(object)[d.key] == h.at+"/moved" })
	h.change("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = h.at + "/east" })
	is("moved back", leads)

	object := d.kind()
	object.SetNamespace(d.namespace)
	object.SetName(d.object)
	h.must(h.Delete(h.t.Context(), object))
	is("made again", leads)

	var access []v1beta1.Access
	h.change("east", func(c *v1beta1.Cluster) { access, c.Spec.Access = c.Spec.Access, nil })
	gone("there is no access")
	h.awaitState(contract.FunctionRunning, "has no access with the audience Controller")
	h.change("east", func(c *v1beta1.Cluster) { c.Spec.Access = access })
	is("access again", leads)
	h.change("east", func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" })
	gone("the cluster is not selected")
}

// binding returns the binding by which a format is written.
func (h *hub) binding(d document) *rbacv1.RoleBinding {
	h.t.Helper()
	out := &rbacv1.RoleBinding{}
	h.must(h.Get(h.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: contract.ExportsBinding("default", "hub", d.kinds)}, out))
	return out
}

// goesWith reports whether the garbage collector, which a bare host does not run, would delete an
// object with a binding.
func (h *hub) goesWith(binding *rbacv1.RoleBinding) func(client.Object) bool {
	return func(object client.Object) bool {
		owners := object.GetOwnerReferences()
		return len(owners) == 1 && owners[0].UID == binding.UID && owners[0].Kind == "RoleBinding" && owners[0].Name == binding.Name && owners[0].APIVersion == "rbac.authorization.k8s.io/v1"
	}
}
