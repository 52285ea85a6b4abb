package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// selecting is a registry, and a host cluster in whose namespace "team" clusters of it are
// selected, by a controller with the roles that are shipped.
type selecting struct {
	client.Client
	t        *testing.T
	host     *framework.Host
	clusters typed.ClusterInterface
	flags    []string
}

func newSelecting(t *testing.T) *selecting {
	t.Helper()
	host := framework.StartHost(t, newest, "front-proxy-client")
	registry, clients, config := independent(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &selecting{t: t, host: host, clusters: versioned.NewForConfigOrDie(config).ClusterregistryV1beta1().Clusters()}
	s.install(filepath.Join(framework.Root(t), "manifests", "operator", "crd"))
	var err error
	if s.Client, err = client.New(host.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	framework.Create(t, s.Client, shippedRoles(t)...)
	s.bind("default", "clusterregistry:controller")
	s.flags = []string{
		"--kubeconfig=" + registry.Kubeconfig(t, clients.Issue("controller", []string{contract.ClusterSelectionsGroup})),
		"--host-kubeconfig=" + host.Kubeconfig("selections"), "--namespace=default", "--registry-name=hub",
	}
	// The election of the controller as it is run without the operator makes the Lease.
	framework.Create(t, s.Client,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lease", Namespace: "default"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "lease", Namespace: "default"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lease"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "selections"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	s.bind("team", "clusterregistry:controller:cluster-selections:namespace")
	return s
}

// bind gives the controller a role that is shipped, in a namespace.
func (s *selecting) bind(namespace, role string) {
	s.t.Helper()
	framework.Create(s.t, s.Client, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "controller", Namespace: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "selections"}}})
}

func (s *selecting) install(path string) {
	s.t.Helper()
	if _, err := envtest.InstallCRDs(s.host.Config, envtest.CRDInstallOptions{MaxTime: framework.Patience, Paths: []string{path}}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *selecting) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// enter writes an entry to the registry.
func (s *selecting) enter(name, tier string) {
	s.t.Helper()
	_, err := s.clusters.Create(s.t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier, "team": "a"}}}, metav1.CreateOptions{})
	s.must(err)
}

// label changes the tier of an entry.
func (s *selecting) label(name, key, value string) {
	s.t.Helper()
	framework.Eventually(s.t, "an entry to be written", func(ctx context.Context) error {
		c, err := s.clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Labels[key] = value
		_, err = s.clusters.Update(ctx, c, metav1.UpdateOptions{})
		return err
	})
}

// selection is one of the tier gold, which is not kept stable.
func selection(name, where string) *operatorv1alpha1.ClusterSelection {
	return &operatorv1alpha1.ClusterSelection{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}, Spec: operatorv1alpha1.ClusterSelectionSpec{
		RegistryRef: operatorv1alpha1.RegistryReference{Name: "hub", Namespace: "default"}, Where: where, StabilizationSeconds: ptr.To[int32](0),
	}}
}

// await waits until a selection has decisions, and a condition a reason.
func (s *selecting) await(name, decisions, condition, reason string) *operatorv1alpha1.ClusterSelection {
	s.t.Helper()
	out := &operatorv1alpha1.ClusterSelection{}
	framework.Eventually(s.t, fmt.Sprintf("selection %s: %q, %s %s", name, decisions, condition, reason), func(ctx context.Context) error {
		*out = operatorv1alpha1.ClusterSelection{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: "team", Name: name}, out); err != nil {
			return err
		}
		var names []string
		for _, d := range out.Status.Decisions {
			names = append(names, d.ClusterName)
		}
		c := meta.FindStatusCondition(out.Status.Conditions, condition)
		if strings.Join(names, " ") != decisions || c == nil || c.Reason != reason || c.ObservedGeneration != out.Generation {
			return fmt.Errorf("its status is %+v", out.Status)
		}
		return nil
	})
	return out
}

// awaitPlaced waits until PlacementDecisions have this, by name.
func (s *selecting) awaitPlaced(want string) {
	s.t.Helper()
	framework.Eventually(s.t, "PlacementDecisions: "+want, func(ctx context.Context) error {
		list := &v1alpha1.PlacementDecisionList{}
		if err := s.List(ctx, list, client.InNamespace("team")); err != nil {
			return err
		}
		var got []string
		for _, slice := range list.Items {
			names := []string{slice.Name + ":"}
			for _, d := range slice.Decisions {
				names = append(names, d.ClusterProfileRef.Name)
			}
			got = append(got, strings.Join(names, " "))
		}
		if is := strings.Join(got, ", "); is != want {
			return fmt.Errorf("they are %q", is)
		}
		return nil
	})
}

// TestClusterSelections goes through the life of selections in a namespace of a real
// kube-apiserver, which at first is closed, and has no PlacementDecisions.
func TestClusterSelections(t *testing.T) {
	t.Parallel()
	s := newSelecting(t)
	s.enter("east", "gold")
	s.enter("west", "silver")
	s.enter("other", "gold")
	s.label("other", "team", "b") // which the namespace may not see
	s.must(s.Create(t.Context(), selection("gold", "cluster.labels[?'tier'].orValue('') == 'gold'")))
	controller := framework.StartController(t, append(s.flags, "--cluster-selections=team:team=a")...)
	s.awaitFunction(contract.FunctionRefused, `Namespace "team" is not open to this registry`)
	namespace := &corev1.Namespace{}
	s.must(s.Get(t.Context(), client.ObjectKey{Name: "team"}, namespace))
	namespace.Labels = map[string]string{registryMark: "default"}
	s.must(s.Update(t.Context(), namespace))

	s.await("gold", "east", "Published", "NotServed")
	s.awaitFunction(contract.FunctionRunning, "")
	s.install(filepath.Join(framework.ModuleDir(t, inventory), "config", "crd", "bases"))
	is := s.await("gold", "east", "Published", "Published")
	s.awaitPlaced("gold-0: east")
	if is.Spec.Limit != 1000 || is.Status.Selected != 1 || is.Status.DecisionTime == nil {
		t.Errorf("it is %+v", is)
	}

	s.label("west", "tier", "gold")
	s.await("gold", "east west", "Ready", "Decided")
	s.awaitPlaced("gold-0: east west")
	s.label("east", "tier", "silver")
	s.await("gold", "west", "Ready", "Decided")
	s.awaitPlaced("gold-0: west")
	s.must(s.DeleteAllOf(t.Context(), &v1alpha1.PlacementDecision{}, client.InNamespace("team")))
	s.awaitPlaced("gold-0: west")

	s.must(s.Create(t.Context(), selection("wrong", "labels['tier'] == 'gold'")))
	if c := meta.FindStatusCondition(s.await("wrong", "", "Ready", "InvalidExpression").Status.Conditions, "Ready"); !strings.Contains(c.Message, "spec.where is not valid at line 1, column 1") {
		t.Errorf("the condition is %+v", c)
	}
	controller.Stop()
	s.must(s.Delete(t.Context(), selection("wrong", "")))
	controller = framework.StartController(t, append(s.flags, "--cluster-selections=team:team=a")...)
	s.awaitPlaced("gold-0: west")
	s.must(s.Delete(t.Context(), selection("gold", "")))
	s.awaitPlaced("")
	controller.Stop()
}

// awaitFunction waits until the controller says at its Lease how the function is.
func (s *selecting) awaitFunction(state contract.FunctionState, says string) {
	s.t.Helper()
	framework.Eventually(s.t, fmt.Sprintf("the function to be %s: %s", state, says), func(ctx context.Context) error {
		lease, err := clientset(s.t, s.host.Config).CoordinationV1().Leases("default").Get(ctx, "clusterregistry-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status contract.ControllerStatus
		if err := json.Unmarshal([]byte(lease.Annotations[contract.ControllerStatusAnnotation]), &status); err != nil {
			return err
		}
		if is := status.Functions[contract.ClusterSelectionsFunction]; is.State != state || !strings.Contains(is.Message, says) {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
}

// TestClusterSelectionSchema has the host cluster refuse selections that can't be acted on.
func TestClusterSelectionSchema(t *testing.T) {
	t.Parallel()
	s := newSelecting(t)
	for _, test := range []struct {
		change func(*operatorv1alpha1.ClusterSelection)
		says   string
	}{
		{func(c *operatorv1alpha1.ClusterSelection) { c.Name = strings.Repeat("a", 64) }, "use at most 63 lowercase letters"},
		{func(c *operatorv1alpha1.ClusterSelection) { c.Spec.RegistryRef.Namespace = "A" }, "write the name of a namespace"},
		{func(c *operatorv1alpha1.ClusterSelection) { c.Spec.Limit = 1001 }, "less than or equal to 1000"},
		{func(c *operatorv1alpha1.ClusterSelection) { c.Spec.Where = strings.Repeat("a", 4097) }, "4096"},
		{func(c *operatorv1alpha1.ClusterSelection) {
			c.Spec.OrderBy = make([]operatorv1alpha1.ClusterOrder, 5)
			for i := range c.Spec.OrderBy {
				c.Spec.OrderBy[i].Expression = "cluster.name"
			}
		}, "at most 4 items"},
		{func(c *operatorv1alpha1.ClusterSelection) {
			c.Spec.Tolerations = []operatorv1alpha1.ClusterToleration{{Key: "a", Operator: "Exists", Value: "b"}}
		}, "a toleration with operator Exists has no value"},
		{func(c *operatorv1alpha1.ClusterSelection) {
			c.Spec.Tolerations = []operatorv1alpha1.ClusterToleration{{Value: "b"}}
		}, "a toleration without a key tolerates all taints"},
	} {
		wrong := selection("wrong", "true")
		test.change(wrong)
		if err := s.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("it is created with %v, want %q", err, test.says)
		}
	}
	s.must(s.Create(t.Context(), selection("right", "")))
	right := &operatorv1alpha1.ClusterSelection{}
	s.must(s.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "right"}, right))
	right.Spec.RegistryRef.Name = "other"
	if err := s.Update(t.Context(), right); err == nil || !strings.Contains(err.Error(), "can't be changed: create another ClusterSelection") {
		t.Errorf("its registry is changed with %v", err)
	}
}
