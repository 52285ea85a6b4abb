package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	inventory    = "sigs.k8s.io/cluster-inventory-api"
	registryMark = "registry.clusterregistry.io/hub"
)

// hub is a registry, and a host cluster that its clusters are published in as
// ClusterProfiles, by a controller that has no more rights than it needs.
type hub struct {
	client.WithWatch
	t        *testing.T
	host     *framework.Host
	clusters typed.ClusterInterface
	flags    []string
	// at is a server that shows a certificate which ca has signed: each cluster has a path there.
	at string
	ca []byte
}

// newHub starts both. In the registry, the controller has the rights of more groups than it needs
// for profiles.
func newHub(t *testing.T, more ...string) *hub {
	t.Helper()
	host := framework.StartHost(t, newest, "front-proxy-client")
	registry, clients, config := independent(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, clusterv1.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &hub{t: t, host: host, clusters: versioned.NewForConfigOrDie(config).ClusterregistryV1beta1().Clusters()}
	var err error
	if h.WithWatch, err = client.NewWithWatch(host.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	h.permit("default", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update", "patch"}})
	h.flags = []string{
		"--kubeconfig=" + registry.Kubeconfig(t, clients.Issue("controller", append([]string{contract.HealthGroup}, more...))),
		"--host-kubeconfig=" + host.Kubeconfig("profiles"), "--namespace=default", "--registry-name=hub", "--exports-period=1s",
		"--read-host-cidrs=false", "--host-cidrs=198.51.100.0/24",
	}
	h.at, h.ca = framework.StartMember(t)
	return h
}

func (h *hub) start(flags ...string) *framework.Controller {
	h.t.Helper()
	return framework.StartController(h.t, slices.Concat(h.flags, flags)...)
}

// exports returns the flag for a file with exports, each of which is given in YAML.
func (h *hub) exports(each ...string) string {
	h.t.Helper()
	content, err := yaml.YAMLToJSON([]byte("[" + strings.Join(each, ", ") + "]"))
	h.must(err)
	file := filepath.Join(h.t.TempDir(), "exports.json")
	h.must(os.WriteFile(file, content, 0o600))
	return "--exports-file=" + file
}

func (h *hub) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// permit gives the controller rights in a namespace: those for profiles, and more.
func (h *hub) permit(namespace string, more ...rbacv1.PolicyRule) {
	h.t.Helper()
	h.bind(namespace, "cluster-profiles", more...)
}

// bind does so by the binding that the operator makes for objects of some kinds.
func (h *hub) bind(namespace, kinds string, more ...rbacv1.PolicyRule) {
	h.t.Helper()
	name := metav1.ObjectMeta{Name: "profiles", Namespace: namespace}
	h.must(h.Create(h.t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: append(more,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"clusterprofiles"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"clusterprofiles/status"}, Verbs: []string{"patch"}},
	)}))
	name.Name = contract.ExportsBinding("default", "hub", kinds)
	h.must(h.Create(h.t.Context(), &rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "profiles"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "profiles"}}}))
}

// namespace makes one that is open to the registry.
func (h *hub) namespace(name string) {
	h.t.Helper()
	h.must(h.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{registryMark: "default"}}}))
	h.permit(name)
}

// crds are those of the module of ClusterProfile, as its release has them.
func (h *hub) crds() envtest.CRDInstallOptions {
	h.t.Helper()
	return envtest.CRDInstallOptions{MaxTime: framework.Patience, Paths: []string{filepath.Join(framework.ModuleDir(h.t, inventory), "config", "crd", "bases")}}
}

func (h *hub) install() {
	h.t.Helper()
	_, err := envtest.InstallCRDs(h.host.Config, h.crds())
	h.must(err)
}

// uninstall deletes CRDs, and waits until they are gone.
func (h *hub) uninstall(options envtest.CRDInstallOptions) {
	h.t.Helper()
	h.must(envtest.UninstallCRDs(h.host.Config, options))
	framework.Eventually(h.t, "the CRDs to be gone", func(ctx context.Context) error {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := h.List(ctx, list); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		return nil
	})
}

// enter writes an entry to the registry.
func (h *hub) enter(name, tier string, change ...func(*v1beta1.Cluster)) {
	h.t.Helper()
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier, "other": "x"}}, Spec: v1beta1.ClusterSpec{
		Endpoints: []v1beta1.Endpoint{{Name: "main", URL: h.at + "/" + name, CABundle: h.ca}},
		Access:    []v1beta1.Access{{Name: "tokens", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: "secretreader"}}},
	}}
	for _, f := range change {
		f(c)
	}
	_, err := h.clusters.Create(h.t.Context(), c, metav1.CreateOptions{})
	h.must(err)
}

// change changes an entry.
func (h *hub) change(name string, change func(*v1beta1.Cluster)) {
	h.t.Helper()
	c, err := h.clusters.Get(h.t.Context(), name, metav1.GetOptions{})
	h.must(err)
	change(c)
	_, err = h.clusters.Update(h.t.Context(), c, metav1.UpdateOptions{})
	h.must(err)
}

// say reports a version and a property of a cluster; an empty one takes it back.
func (h *hub) say(name, version, region string) {
	h.t.Helper()
	status := apply.ClusterStatus().WithVersion(apply.ClusterVersion().WithKubernetes(version))
	if region != "" {
		status.WithProperties(apply.Property().WithName("region").WithValue(region))
	}
	_, err := h.clusters.ApplyStatus(h.t.Context(), apply.Cluster(name).WithStatus(status), metav1.ApplyOptions{FieldManager: "agent", Force: true})
	h.must(err)
}

func (h *hub) remove(name string) {
	h.t.Helper()
	h.must(h.clusters.Delete(h.t.Context(), name, metav1.DeleteOptions{}))
}

// await waits until a profile is as check wants it.
func (h *hub) await(namespace, name, what string, check func(*v1alpha1.ClusterProfile) bool) *v1alpha1.ClusterProfile {
	h.t.Helper()
	p := &v1alpha1.ClusterProfile{}
	framework.Eventually(h.t, fmt.Sprintf("profile %s/%s: %s", namespace, name, what), func(ctx context.Context) error {
		*p = v1alpha1.ClusterProfile{}
		if err := h.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
			return err
		}
		if !check(p) {
			return fmt.Errorf("it is %+v", *p)
		}
		return nil
	})
	return p
}

// whole reports whether a profile has all of what there is of a cluster.
func whole(p *v1alpha1.ClusterProfile) bool {
	return len(p.Status.Conditions) >= 3 && len(p.Status.AccessProviders) == 1
}

func (h *hub) awaitGone(namespace, name string) {
	h.t.Helper()
	framework.Eventually(h.t, fmt.Sprintf("profile %s/%s to be gone", namespace, name), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.ClusterProfile{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
}

// awaitState waits until the controller says at its Lease how the function is; says is a
// part of the message, which is empty for Running.
func (h *hub) awaitState(state contract.FunctionState, says string) {
	h.t.Helper()
	framework.Eventually(h.t, fmt.Sprintf("the function to be %s: %s", state, says), func(ctx context.Context) error {
		lease, err := clientset(h.t, h.host.Config).CoordinationV1().Leases("default").Get(ctx, "clusterregistry-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status contract.ControllerStatus
		if err := json.Unmarshal([]byte(lease.Annotations[contract.ControllerStatusAnnotation]), &status); err != nil {
			return err
		}
		is := status.Functions[contract.ExportsFunction]
		if is.State != state || !strings.Contains(is.Message, says) || says == "" && is.Message != "" {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
}

// TestClusterProfiles goes through the life of profiles in namespaces of a real
// kube-apiserver.
func TestClusterProfiles(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	controller := h.start(h.exports(`{namespace: team-a, format: ClusterProfile, selector: {matchLabels: {tier: gold}}, labels: [tier], providers: [secretreader]}`))
	h.enter("east", "gold", func(c *v1beta1.Cluster) { c.Spec.DisplayName = "East" })
	h.enter("west", "gold")
	h.enter("north", "silver")

	// What is missing is said one by one, with what to do.
	h.awaitState(contract.FunctionRefused, "may not read namespace \"team-a\"")
	h.must(h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}))
	h.permit("team-a")
	h.awaitState(contract.FunctionRefused, "kubectl label namespace team-a registry.clusterregistry.io/hub=default")
	h.install()
	h.awaitState(contract.FunctionRefused, "kubectl label namespace team-a")
	list := &v1alpha1.ClusterProfileList{}
	if err := h.List(t.Context(), list); err != nil || len(list.Items) > 0 {
		t.Fatalf("in a namespace that is not open: %+v, %v", list.Items, err)
	}
	h.must(h.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+registryMark+`":"default"}}}`))))
	h.awaitState(contract.FunctionRunning, "")

	h.testContent()
	h.testRepair()
	h.testForeign()
	h.testFinalizer()
	h.testDeletion(controller)
	h.testNamespaceDeleted()
	h.testCRD()
	controller.Stop()
	h.testSelector()
}

func (h *hub) testContent() {
	t := h.t
	p := h.await("team-a", "east", "made", whole)
	if p.Spec.DisplayName != "East" || p.Spec.ClusterManager.Name != "clusterregistry.default.hub" || p.Labels[v1alpha1.LabelClusterManagerKey] != "clusterregistry.default.hub" || p.Labels["tier"] != "gold" || p.Labels["other"] != "" {
		t.Errorf("%+v", p)
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ClusterConditionControlPlaneHealthy); c == nil || c.Status != metav1.ConditionUnknown || c.Reason != "NotReported" {
		t.Errorf("%+v", p.Status.Conditions)
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, "Joined") || p.Status.AccessProviders[0].Cluster.Server != h.at+"/east" {
		t.Errorf("%+v", p.Status)
	}
	h.say("east", "v1.37.1", "eu")
	h.await("team-a", "east", "version and property", func(p *v1alpha1.ClusterProfile) bool {
		return p.Status.Version.Kubernetes == "v1.37.1" && len(p.Status.Properties) == 1 && p.Status.Properties[0].Value == "eu"
	})
	// What the registry no longer has goes.
	h.say("east", "v1.37.2", "")
	h.change("east", func(c *v1beta1.Cluster) {
		c.Spec.DisplayName, c.Spec.Endpoints[0].TLSServerName = "", "api"
	})
	p = h.await("team-a", "east", "without its provider", func(p *v1alpha1.ClusterProfile) bool {
		return p.Status.Version.Kubernetes == "v1.37.2" && len(p.Status.Properties) == 0 && len(p.Status.AccessProviders) == 0 && p.Spec.DisplayName == ""
	})
	if c := meta.FindStatusCondition(p.Status.Conditions, "AccessPublished"); c == nil || c.Reason != "TLSServerNameUnsupported" {
		t.Errorf("%+v", p.Status.Conditions)
	}
	h.change("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "" })
	h.await("team-a", "east", "with its provider", whole)
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "north"}, &v1alpha1.ClusterProfile{}); !apierrors.IsNotFound(err) {
		t.Errorf("a cluster that is not selected: %v", err)
	}
}

// testRepair edits and deletes what the controller has written.
func (h *hub) testRepair() {
	edited := h.await("team-a", "east", "there", whole)
	edited.Labels["tier"], edited.Labels["mine"], edited.Spec.DisplayName = "lead", "kept", "Mine"
	h.must(h.Update(h.t.Context(), edited))
	h.await("team-a", "east", "repaired", func(p *v1alpha1.ClusterProfile) bool {
		return p.Labels["tier"] == "gold" && p.Labels["mine"] == "kept" && p.Spec.DisplayName == ""
	})
	edited = h.await("team-a", "east", "there", whole)
	edited.Status.AccessProviders[0].Cluster.Server, edited.Status.AccessProviders[0].Cluster.InsecureSkipTLSVerify = "https://elsewhere.example.com", true
	h.must(h.Status().Update(h.t.Context(), edited))
	h.await("team-a", "east", "repaired", func(p *v1alpha1.ClusterProfile) bool {
		return p.Status.AccessProviders[0].Cluster.Server == h.at+"/east" && !p.Status.AccessProviders[0].Cluster.InsecureSkipTLSVerify
	})
	before := h.await("team-a", "east", "there", whole)
	h.must(h.Delete(h.t.Context(), before))
	h.await("team-a", "east", "made again", func(p *v1alpha1.ClusterProfile) bool { return p.UID != before.UID && whole(p) })
	// A label of the registry that the cluster loses goes, too.
	h.change("west", func(c *v1beta1.Cluster) { c.Spec.DisplayName = "West" })
	h.await("team-a", "west", "renamed", func(p *v1alpha1.ClusterProfile) bool { return p.Spec.DisplayName == "West" })
}

func (h *hub) testForeign() {
	foreign := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "center", Namespace: "team-a"}, Spec: v1alpha1.ClusterProfileSpec{ClusterManager: v1alpha1.ClusterManager{Name: "karmada"}}}
	h.must(h.Create(h.t.Context(), foreign))
	h.enter("center", "gold")
	h.awaitState(contract.FunctionRunning, `the first has the cluster manager "karmada"`)
	p := h.await("team-a", "center", "as it was", func(p *v1alpha1.ClusterProfile) bool { return p.UID == foreign.UID })
	if p.ResourceVersion != foreign.ResourceVersion {
		h.t.Errorf("it was changed: %+v", p)
	}
	h.must(h.Delete(h.t.Context(), foreign))
	h.await("team-a", "center", "made", whole)
	h.awaitState(contract.FunctionRunning, "")
}

func (h *hub) testFinalizer() {
	const finalizer = "argoproj.io/cluster-profile-finalizer"
	p := h.await("team-a", "center", "there", whole)
	p.Finalizers = []string{finalizer}
	h.must(h.Update(h.t.Context(), p))
	h.remove("center")
	p = h.await("team-a", "center", "terminating", func(p *v1alpha1.ClusterProfile) bool { return p.DeletionTimestamp != nil })
	h.enter("center", "gold")
	h.awaitState(contract.FunctionRunning, "wait for their finalizers, the first for "+finalizer)
	p.Finalizers = nil
	h.must(h.Update(h.t.Context(), p))
	h.await("team-a", "center", "made again", func(now *v1alpha1.ClusterProfile) bool { return now.UID != p.UID && whole(now) })
	h.awaitState(contract.FunctionRunning, "")
}

// testDeletion takes clusters out of the registry: one, and then all at once.
func (h *hub) testDeletion(controller *framework.Controller) {
	h.remove("center")
	h.awaitGone("team-a", "center")
	h.change("west", func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" })
	h.awaitGone("team-a", "west")
	h.change("west", func(c *v1beta1.Cluster) { c.Labels["tier"] = "gold" })
	h.enter("center", "gold")
	kept := map[string]string{}
	for _, name := range []string{"center", "east", "west"} {
		kept[name] = string(h.await("team-a", name, "there", whole).UID)
	}
	resume := controller.Pause() // one by one, they would not be many
	for name := range kept {
		h.remove(name)
	}
	resume()
	h.awaitState(contract.FunctionRunning, "kubectl delete clusterprofiles.multicluster.x-k8s.io --namespace=team-a center east west")
	// With one cluster back, only two profiles would be left to delete, which are not many.
	resume = controller.Pause()
	for name := range kept {
		h.enter(name, "gold")
	}
	resume()
	h.awaitState(contract.FunctionRunning, "")
	for name, uid := range kept {
		h.await("team-a", name, "the one that was kept", func(p *v1alpha1.ClusterProfile) bool { return string(p.UID) == uid && whole(p) })
	}
}

// testNamespaceDeleted deletes the namespace as its controller would, which a bare host
// does not run, and makes it again.
func (h *hub) testNamespaceDeleted() {
	t := h.t
	h.must(h.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}))
	h.must(h.DeleteAllOf(t.Context(), &v1alpha1.ClusterProfile{}, client.InNamespace("team-a")))
	h.awaitState(contract.FunctionFailing, "Namespace \"team-a\" is being deleted")
	h.must(h.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace("team-a")))
	h.must(h.DeleteAllOf(t.Context(), &rbacv1.Role{}, client.InNamespace("team-a")))
	h.must(h.DeleteAllOf(t.Context(), &v1alpha1.ClusterProfile{}, client.InNamespace("team-a")))
	ns, err := clientset(t, h.host.Config).CoreV1().Namespaces().Get(t.Context(), "team-a", metav1.GetOptions{})
	h.must(err)
	ns.Spec.Finalizers = nil
	_, err = clientset(t, h.host.Config).CoreV1().Namespaces().Finalize(t.Context(), ns, metav1.UpdateOptions{})
	h.must(err)
	h.awaitState(contract.FunctionRefused, "may not read namespace \"team-a\"")
	h.namespace("team-a")
	h.await("team-a", "east", "made", whole)
	h.awaitState(contract.FunctionRunning, "")
}

// testCRD takes the CRD away, brings it back in another version and without a field, and
// then as it was.
func (h *hub) testCRD() {
	h.uninstall(h.crds())
	h.awaitState(contract.FunctionFailing, "The host cluster has no ClusterProfiles (multicluster.x-k8s.io/v1alpha1)")
	h.install()
	h.awaitState(contract.FunctionRunning, "")
	h.await("team-a", "east", "made again", whole)

	h.uninstall(h.crds())
	for says, change := range map[string]func(*apiextensionsv1.CustomResourceDefinitionVersion){
		"serves multicluster.x-k8s.io as v1beta1 alone": func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Name = "v1beta1" },
		"the installed CRD is of another release": func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
			delete(v.Schema.OpenAPIV3Schema.Properties["status"].Properties, "accessProviders")
		},
	} {
		options := h.crds()
		h.must(envtest.ReadCRDFiles(&options))
		options.Paths, options.CRDs = nil, slices.DeleteFunc(options.CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return crd.Spec.Names.Kind != "ClusterProfile"
		})
		change(&options.CRDs[0].Spec.Versions[0])
		_, err := envtest.InstallCRDs(h.host.Config, options)
		h.must(err)
		h.awaitState(contract.FunctionFailing, says)
		h.uninstall(options)
	}
	h.install()
	h.awaitState(contract.FunctionRunning, "")
	for _, name := range []string{"center", "east", "west"} {
		h.await("team-a", name, "made again", whole)
	}
}

// testSelector starts the controller with another selector, and a second namespace.
func (h *hub) testSelector() {
	h.namespace("team-b")
	controller := h.start(h.exports(`{namespace: team-a, format: ClusterProfile, selector: {matchLabels: {tier: silver}}, labels: [tier], providers: [secretreader]}`,
		`{namespace: team-b, format: ClusterProfile, providers: [secretreader]}`, `{namespace: default, format: ClusterProfile, selector: {matchLabels: {name: none}}}`))
	h.await("team-a", "north", "selected now", whole)
	for _, name := range []string{"center", "east", "north", "west"} {
		h.await("team-b", name, "in a second namespace", whole)
	}
	// Three of four are no longer selected: a person decides.
	h.awaitState(contract.FunctionRunning, "--namespace=team-a center east west")
	h.must(h.DeleteAllOf(h.t.Context(), &v1alpha1.ClusterProfile{}, client.InNamespace("team-a"), client.MatchingLabels{registryMark: "default"}))
	h.awaitState(contract.FunctionRunning, "")
	h.await("team-a", "north", "made again", whole)
	h.awaitGone("team-a", "east")
	controller.Stop()
}
