package integration

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestClusterAPI brings clusters of Cluster API into a registry, from before Cluster API
// is there until it is gone.
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	i := newImporter(t)
	i.start()
	i.awaitState(contract.FunctionRefused, "clusterctl init", "kubectl label namespace team-b registry.clusterregistry.io/hub=registries")
	i.label("another")
	i.awaitState(contract.FunctionRefused, "kubectl label namespace team-b")
	i.label("registries")
	i.awaitState(contract.FunctionStarting, "clusterctl init")
	i.install(func(crd *apiextensionsv1.CustomResourceDefinition) { serve(crd, false) })
	i.awaitState(contract.FunctionRefused, "upgrade it to v1.11")
	i.updateCRD(func(crd *apiextensionsv1.CustomResourceDefinition) { serve(crd, true) })
	i.awaitState(contract.FunctionRunning)

	east := testImported(t, i)
	testConfined(t, i, east)
	testFollowed(t, i, east)
	testHeld(t, i)
	testIgnored(t, i, east)
	testMoved(t, i, east)
	testClosedNamespace(t, i)
	testDeleted(t, i)
	testRemoved(t, i)
}

// serve has the CRD serve v1beta2, or v1beta1 alone.
func serve(crd *apiextensionsv1.CustomResourceDefinition, served bool) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == "v1beta2" {
			crd.Spec.Versions[i].Served = served
		}
	}
}

func (i *importer) updateCRD(change func(*apiextensionsv1.CustomResourceDefinition)) {
	i.t.Helper()
	framework.Eventually(i.t, "the CRD to be updated", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := i.client.Get(ctx, types.NamespacedName{Name: "clusters.cluster.x-k8s.io"}, crd); err != nil {
			return err
		}
		change(crd)
		return i.client.Update(ctx, crd)
	})
}

// testImported makes a Cluster, and expects its entry.
func testImported(t *testing.T, i *importer) *clusterv1.Cluster {
	ca := framework.NewAuthority(t, "east")
	i.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "east-ca"}, Data: map[string]string{"ca.crt": string(ca.PEM)}})
	east := i.provision("team-a", "east")
	i.change(east, func(c *clusterv1.Cluster) {
		c.Annotations = map[string]string{"clusterregistry.k8s.io/ca-configmap": "east-ca"}
		c.Labels["example.com/tier"] = "gold"
	})
	want := v1beta1.ClusterSpec{
		Manager:   &v1beta1.Manager{Name: contract.ClusterAPIReporter},
		SourceRef: &v1beta1.SourceReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "team-a", Name: "east", UID: string(east.UID)},
		Endpoints: []v1beta1.Endpoint{{Name: "cluster-api", URL: "https://east.team-a.example.com:6443", CABundle: ca.PEM}},
		// What was granted to the namespace.
		ClusterSet: "gold",
		Access: []v1beta1.Access{
			{Name: "login", Audience: v1beta1.AudienceController, Exec: &v1beta1.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "login", Args: []string{"--cluster=team-a/east"}}},
			{Name: "secretreader", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{}},
		},
	}
	i.awaitEntry("east", "all that the Cluster says", func(e *v1beta1.Cluster) error {
		var kinds []string
		for _, r := range clusterStatus(e).Reporters {
			for _, c := range r.Conditions {
				kinds = append(kinds, r.Name+" "+c.Type+" "+string(c.Status))
			}
		}
		reported := []string{"Joined True", "Available True", "InfrastructureReady True", "Paused False"}
		for k := range reported {
			reported[k] = contract.ClusterAPIReporter + " " + reported[k]
		}
		if marshaled(t, e.Spec) != marshaled(t, want) || !reflect.DeepEqual(e.Labels, map[string]string{"env": "prod", "example.com/tier": "gold", v1beta1.ClusterSetLabel: "gold"}) ||
			clusterStatus(e).Version.Kubernetes != "v1.37.0" || !reflect.DeepEqual(kinds, reported) || conditionOf(e, "Joined").Reason != "Imported" {
			return fmt.Errorf("%s, labels %v, %q, %+v", marshaled(t, e.Spec), e.Labels, kinds, e.Status)
		}
		return nil
	})
	return east
}

// testConfined has whoever may write a Cluster lead it elsewhere: at no moment an entry has both
// access and an address where its credentials may not go.
func testConfined(t *testing.T, i *importer, east *clusterv1.Cluster) {
	before, err := i.clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := i.clusters.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=east", ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	lead := func(host string, ways int) {
		i.change(east, func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = host })
		i.awaitEntry("east", host, func(e *v1beta1.Cluster) error {
			if e.Spec.Endpoints[0].URL != "https://"+host+":6443" || len(e.Spec.Access) != ways {
				return fmt.Errorf("%s", marshaled(t, e.Spec))
			}
			return nil
		})
	}
	lead("east.team-b.example.com", 0)
	i.awaitState(contract.FunctionRunning, "1 Clusters held", "clusterAPI.accessTemplates[1] is not entered", "https://east.team-b.example.com:6443")
	lead("east.team-a.example.com", 2)
	i.awaitState(contract.FunctionRunning)
	outside, back := 0, false
	for !back {
		event := <-seen.ResultChan()
		entry, ok := event.Object.(*v1beta1.Cluster)
		if !ok {
			t.Fatalf("the watch ended: %+v", event)
		}
		if strings.Contains(entry.Spec.Endpoints[0].URL, "team-b") {
			if outside++; len(entry.Spec.Access) > 0 {
				t.Errorf("with access, it leads elsewhere: %s", marshaled(t, entry.Spec))
			}
		}
		back = outside > 0 && len(entry.Spec.Access) == 2
	}
}

// testFollowed changes a Cluster and its entry, and expects that each keeps what is its
// own; then that nothing is written any more.
func testFollowed(t *testing.T, i *importer, east *clusterv1.Cluster) {
	own := framework.NewAuthority(t, "own").PEM
	i.edit("east", func(e *v1beta1.Cluster) {
		e.Labels["mine"], e.Spec.DisplayName = "x", "East"
		e.Spec.Access[0].Exec.Args = []string{"--mine"}
		e.Spec.Endpoints = append(e.Spec.Endpoints, v1beta1.Endpoint{Name: "vpn", URL: "https://east.vpn", CABundle: own})
	})
	i.change(east, func(c *clusterv1.Cluster) {
		c.Annotations, c.Labels = nil, map[string]string{"env": "test"}
		c.Spec.ControlPlaneEndpoint.Host = "10.0.0.1"
	})
	i.report(east, metav1.ConditionFalse)
	i.awaitEntry("east", "what was changed", func(e *v1beta1.Cluster) error {
		if !reflect.DeepEqual(e.Labels, map[string]string{"env": "test", "mine": "x", v1beta1.ClusterSetLabel: "gold"}) || e.Spec.DisplayName != "East" || len(e.Spec.Endpoints) != 2 || e.Spec.Endpoints[0].URL != "https://10.0.0.1:6443" ||
			e.Spec.Endpoints[0].CABundle != nil || string(e.Spec.Endpoints[1].CABundle) != string(own) || !slices.ContainsFunc(clusterStatus(e).Reporters[0].Conditions, unavailable) {
			return fmt.Errorf("%s, %v, %s", marshaled(t, e.Spec), e.Labels, marshaled(t, e.Status))
		}
		// No template is for it any more, and one way to sign in is a person's since.
		if len(e.Spec.Access) != 1 || e.Spec.Access[0].Exec == nil || e.Spec.Access[0].Exec.Args[0] != "--mine" || e.Spec.ClusterSet != "gold" {
			return fmt.Errorf("%s", marshaled(t, e.Spec))
		}
		return nil
	})
	// A CA that someone has entered at the imported endpoint stays, too.
	entry := i.edit("east", func(e *v1beta1.Cluster) { e.Spec.Endpoints[0].CABundle = own })
	// One more is a clock of the controller's own: what changed before has been looked at.
	clock := i.provision("team-b", "clock")
	i.await("clock", metav1.ConditionTrue, "Imported")
	i.change(east, func(c *clusterv1.Cluster) { c.Labels["team"] = "z" }) // which is not copied
	i.change(clock, func(c *clusterv1.Cluster) { c.Labels["env"] = "later" })
	i.awaitEntry("clock", "a later label", func(e *v1beta1.Cluster) error {
		if e.Labels["env"] != "later" {
			return fmt.Errorf("%v", e.Labels)
		}
		return nil
	})
	after, err := i.clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != entry.ResourceVersion {
		t.Errorf("a steady entry was written: %s, %v", marshaled(t, after), err)
	}
}

func unavailable(c metav1.Condition) bool {
	return c.Type == "Available" && c.Status == metav1.ConditionFalse
}

// edit changes an entry as a person does.
func (i *importer) edit(name string, change func(*v1beta1.Cluster)) (out *v1beta1.Cluster) {
	i.t.Helper()
	framework.Eventually(i.t, name+" to be edited", func(ctx context.Context) error {
		entry, err := i.clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(entry)
		out, err = i.clusters.Update(ctx, entry, metav1.UpdateOptions{FieldManager: "ann"})
		return err
	})
	return out
}

// testHeld has two entries of one name.
func testHeld(t *testing.T, i *importer) {
	mine := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "north"}, Spec: v1beta1.ClusterSpec{DisplayName: "a person's"}}
	mine, err := i.clusters.Create(t.Context(), mine, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	north, twin := i.provision("team-a", "north"), i.provision("team-b", "east")
	i.awaitState(contract.FunctionRunning, "2 Clusters held", `cluster "north" exists, and was not made by this controller`, "adopt="+string(north.UID), `cluster "east" is the entry of the Cluster team-a/east`)
	framework.Eventually(t, "events of both", func(ctx context.Context) error {
		events, err := clientset(t, i.host.Config).EventsV1().Events("registries").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		said := map[string]bool{}
		for _, event := range events.Items {
			if event.Regarding.Kind == "ClusterRegistry" && event.Regarding.Name == "hub" && event.Reason == "NameTaken" {
				for _, name := range []string{"team-a/north", "team-b/east"} {
					said[name] = said[name] || strings.Contains(event.Note, name)
				}
			}
		}
		if !said["team-a/north"] || !said["team-b/east"] {
			return fmt.Errorf("there are %+v", events.Items)
		}
		return nil
	})
	if now, err := i.clusters.Get(t.Context(), "north", metav1.GetOptions{}); err != nil || now.ResourceVersion != mine.ResourceVersion {
		t.Errorf("a person's entry was written: %+v, %v", now, err)
	}
	i.destroy(twin)
	if err := i.clusters.Delete(t.Context(), "north", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	i.await("north", metav1.ConditionTrue, "Imported")
	i.awaitState(contract.FunctionRunning)
}

// testIgnored takes a Cluster out of the registry, and back.
func testIgnored(t *testing.T, i *importer, east *clusterv1.Cluster) {
	i.change(east, func(c *clusterv1.Cluster) { c.Labels["clusterregistry.k8s.io/ignore"] = "true" })
	i.await("east", metav1.ConditionFalse, "Unselected")
	i.change(east, func(c *clusterv1.Cluster) { delete(c.Labels, "clusterregistry.k8s.io/ignore") })
	i.await("east", metav1.ConditionTrue, "Imported")
	if i.change(east, func(c *clusterv1.Cluster) {}); len(east.Finalizers) != 1 {
		t.Errorf("finalizers %v", east.Finalizers)
	}
}

// testMoved moves a Cluster away and back.
func testMoved(t *testing.T, i *importer, east *clusterv1.Cluster) {
	before := i.await("east", metav1.ConditionTrue, "Imported")
	i.moveAway(east)
	if moved := i.await("east", metav1.ConditionUnknown, "Moved"); moved.Annotations["clusterregistry.k8s.io/keep"] != "Moved" {
		t.Errorf("annotations %v", moved.Annotations)
	}
	east = i.provision("team-a", "east")
	i.awaitState(contract.FunctionRunning, "adopt="+string(east.UID))
	adopt := fmt.Sprintf(`{"metadata":{"annotations":{"clusterregistry.k8s.io/adopt":%q}}}`, east.UID)
	if _, err := i.clusters.Patch(t.Context(), "east", types.MergePatchType, []byte(adopt), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	after := i.await("east", metav1.ConditionTrue, "Imported")
	if after.UID != before.UID || after.Spec.SourceRef.UID != string(east.UID) || after.Spec.DisplayName != "East" {
		t.Errorf("%+v", after)
	}
	i.awaitState(contract.FunctionRunning)
}

// testClosedNamespace takes the label off a namespace: what happens there afterwards is
// not seen, until it is back.
func testClosedNamespace(t *testing.T, i *importer) {
	b := i.provision("team-b", "south")
	entry := i.await("south", metav1.ConditionTrue, "Imported")
	i.awaitEntry("south", "its version", func(e *v1beta1.Cluster) error {
		if entry = e; clusterStatus(e).Version.Kubernetes != "v1.37.0" || len(e.Spec.Endpoints) == 0 {
			return fmt.Errorf("%+v", e.Status)
		}
		return nil
	})
	i.label("")
	i.awaitState(contract.FunctionRefused, "kubectl label namespace team-b")
	i.destroy(b)
	clock := i.provision("team-a", "clock-a") // seen after that
	i.await("clock-a", metav1.ConditionTrue, "Imported")
	i.destroy(clock)
	i.await("clock-a", metav1.ConditionFalse, "Deleted") // which takes longer than it took to miss the other one
	if now, err := i.clusters.Get(t.Context(), "south", metav1.GetOptions{}); err != nil || now.ResourceVersion != entry.ResourceVersion {
		t.Errorf("written: %+v, %v", now, err)
	}
	i.label("registries")
	i.await("south", metav1.ConditionFalse, "Deleted")
	i.awaitState(contract.FunctionRunning)
}

// testDeleted restarts the controller with another policy: entries of what has gone
// before are deleted, and others once their Clusters go.
func testDeleted(t *testing.T, i *importer) {
	i.Stop()
	i.start("--cluster-api-deletion-policy=Delete", "--cluster-api-grace-period=1s")
	i.awaitGone("south")
	i.awaitGone("clock-a")
	north := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "north"}}
	if err := i.client.Delete(t.Context(), north); err != nil {
		t.Fatal(err)
	}
	i.await("north", metav1.ConditionTrue, "Deleting")
	i.finalize(north)
	i.awaitGone("north")
	for _, name := range []string{"east", "clock"} {
		i.await(name, metav1.ConditionTrue, "Imported")
	}
}

// testRemoved removes Cluster API, which takes all Clusters with it, and installs it again:
// no entry is deleted for that, whoever leads.
func testRemoved(t *testing.T, i *importer) {
	for _, key := range []types.NamespacedName{{Namespace: "team-a", Name: "east"}, {Namespace: "team-b", Name: "clock"}} {
		i.finalize(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	}
	if err := i.client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusters.cluster.x-k8s.io"}}); err != nil {
		t.Fatal(err)
	}
	i.awaitState(contract.FunctionStarting, "clusterctl init")
	before := map[string]types.UID{}
	for _, name := range []string{"east", "clock"} {
		before[name] = i.await(name, metav1.ConditionUnknown, "ClusterAPIRemoved").UID
	}
	i.Kill()
	i.start("--cluster-api-deletion-policy=Delete", "--cluster-api-grace-period=1s")
	i.install(nil)
	i.provision("team-a", "west")
	i.await("west", metav1.ConditionTrue, "Imported")
	i.destroy(i.provision("team-a", "clock-b"))
	i.awaitGone("clock-b") // which takes longer than to find out of those before
	for name, uid := range before {
		if now := i.await(name, metav1.ConditionUnknown, "ClusterAPIRemoved"); now.UID != uid {
			t.Errorf("%s was made again: %+v", name, now)
		}
	}
	// Restored from a backup, the Clusters have other UIDs.
	east := i.provision("team-a", "east")
	i.awaitState(contract.FunctionRunning, "adopt="+string(east.UID))
}
