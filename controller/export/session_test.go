package export

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/clusterprofile"
	"github.com/clusterregistry/operator/internal/contract"
)

func expectWrites(t *testing.T, b *bench, reason string, want ...string) {
	t.Helper()
	if got := b.writesOf(); !slices.Equal(got, want) {
		t.Errorf("%s: writes %q, want %q", reason, got, want)
	}
}

func expectState(t *testing.T, b *bench, reason string, state contract.FunctionState, says string) {
	t.Helper()
	b.session.queue.Add(sweep)
	b.settle()
	if v := b.judge(); v.state != state || !strings.Contains(v.message, says) || (v.message == "") != (says == "") {
		t.Errorf("%s: %s %q, want %s with %q", reason, v.state, v.message, state, says)
	}
}

// TestWrites expects that a profile is written when its content changes, once in 30 seconds,
// and that nothing that changed meanwhile is lost.
func TestWrites(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"))
	expectWrites(t, b, "a new cluster", "create east", "apply main east", "apply status east")
	b.pass(time.Hour)
	expectWrites(t, b, "nothing changes")

	b.put(member("east", func(c *v1beta1.Cluster) {
		c.ResourceVersion, c.Status.Reporters = "7", []v1beta1.Reporter{{Name: "agent"}}
		c.Status.Properties[0].LastObservedTime = &metav1.Time{Time: b.time.Now()}
		c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(b.time.Now())
	}))
	b.pass(time.Minute)
	expectWrites(t, b, "a heartbeat")

	b.put(member("east", version1("v1.38.0")))
	expectWrites(t, b, "a change after a long time", "apply status east")
	for i := range 20 {
		b.put(member("east", version1(fmt.Sprintf("v1.38.%d", i))))
		b.pass(time.Second)
	}
	expectWrites(t, b, "changes within 20 seconds")
	b.pass(11 * time.Second)
	expectWrites(t, b, "their sum", "apply status east")
	if got := b.profile("east").Status.Version.Kubernetes; got != "v1.38.19" {
		t.Errorf("the last change of a burst: %s", got)
	}

	b.put(member("east", version1("v1.39.0"), func(c *v1beta1.Cluster) { c.Spec.DisplayName = "East" }))
	b.pass(30 * time.Second)
	expectWrites(t, b, "both parts change: the first", "apply status east")
	b.pass(30 * time.Second)
	expectWrites(t, b, "both parts change: the second", "apply main east")

	b.put(member("east", version1("v1.40.0"), func(c *v1beta1.Cluster) { c.Spec.DisplayName = "East" }))
	b.put(member("east", version1("v1.39.0"), func(c *v1beta1.Cluster) { c.Spec.DisplayName = "East" }))
	b.pass(time.Minute)
	expectWrites(t, b, "a change that was taken back")
}

// TestBound writes as often as it may for ten minutes, from a registry that changes all the time
// and a namespace where someone undoes every write.
func TestBound(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"))
	b.writesOf()
	for i := range 600 {
		b.put(member("east", version1(fmt.Sprintf("v1.38.%d", i))))
		b.host.edit("east", func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{clusterprofile.ManagerLabel: "x", "registry.clusterregistry.io/hub": "registries"})
		})
		b.pass(time.Second)
	}
	if n := len(b.writesOf()); n < 18 || n > 600/30 {
		t.Errorf("%d writes in ten minutes", n)
	}
}

// TestDeletedOverAndOver expects that a profile that someone deletes at once, again and
// again, is not made again each time at once.
func TestDeletedOverAndOver(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"))
	for range 600 {
		if b.profile("east") != nil {
			b.host.remove("east")
		}
		b.pass(time.Second)
	}
	if n := len(b.writesOf()); n < 55 || n > 3*(600/30+1) {
		t.Errorf("%d writes in ten minutes", n)
	}
}

// TestTakeover expects that a controller that takes over writes no sooner than the one
// before would have, and that two at once don't undo each other.
func TestTakeover(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"))
	b.pass(20 * time.Second)
	b.writesOf()
	b.writes = map[string]writes{} // another process
	b.put(member("east", version1("v1.38.0")))
	b.pass(9 * time.Second)
	expectWrites(t, b, "29 seconds after the write of the one before")
	b.pass(2 * time.Second)
	expectWrites(t, b, "31 seconds after", "apply status east")

	// One that is behind: it sees the registry as it was, but the profile as it is.
	b.writes = map[string]writes{}
	b.put(member("east"))
	b.pass(20 * time.Second)
	b.put(member("east", version1("v1.38.0"))) // it has caught up
	b.pass(time.Minute)
	expectWrites(t, b, "a controller that was behind")

	// A host cluster whose clock is an hour ahead delays no write by an hour.
	b.writes = map[string]writes{}
	b.host.edit("east", func(o *unstructured.Unstructured) {
		fields := o.GetManagedFields()
		for i := range fields {
			fields[i].Time = &metav1.Time{Time: b.time.Now().Add(time.Hour)}
		}
		o.SetManagedFields(fields)
	})
	b.put(member("east", version1("v1.39.0")))
	b.pass(31 * time.Second)
	expectWrites(t, b, "a clock that is ahead", "apply status east")
}

// TestKilled expects that a profile that was made without a status gets one at once from the
// next process.
func TestKilled(t *testing.T) {
	for _, at := range []string{"apply main east", "apply status east"} {
		b := newBench(t, "")
		b.host.fail = func(write string) error {
			if write == at {
				return errors.New("killed")
			}
			return nil
		}
		b.put(member("east"))
		b.host.fail, b.writes, b.queue.waiting = nil, map[string]writes{}, nil
		b.writesOf()
		b.queue.Add("east")
		b.settle()
		expectWrites(t, b, "killed before: "+at, "apply status east")
		b.pass(31 * time.Second)
		if !b.complete("east") {
			t.Errorf("killed before %s: %+v", at, b.profile("east"))
		}
	}
}

func TestHandEdits(t *testing.T) {
	for reason, edit := range map[string]func(o *unstructured.Unstructured){
		"a label": func(o *unstructured.Unstructured) {
			l := o.GetLabels()
			l["tier"] = "lead"
			o.SetLabels(l)
		},
		"the manager's label": func(o *unstructured.Unstructured) {
			l := o.GetLabels()
			delete(l, clusterprofile.ManagerLabel)
			o.SetLabels(l)
		},
		"the display name": func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "Mine", "spec", "displayName")
		},
		"the version": func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "v0", "status", "version", "kubernetes")
		},
		"no conditions": func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status", "conditions") },
		"no status":     func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status") },
		"another server": func(o *unstructured.Unstructured) {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "accessProviders")
			_ = unstructured.SetNestedField(list[0].(map[string]any), "https://elsewhere", "cluster", "server")
			_ = unstructured.SetNestedSlice(o.Object, list, "status", "accessProviders")
		},
		"no TLS": func(o *unstructured.Unstructured) {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "accessProviders")
			_ = unstructured.SetNestedField(list[0].(map[string]any), true, "cluster", "insecure-skip-tls-verify")
			_ = unstructured.SetNestedSlice(o.Object, list, "status", "accessProviders")
		},
	} {
		b := newBench(t, "")
		b.put(member("east"))
		b.pass(time.Minute)
		b.writesOf()
		b.host.edit("east", edit)
		if n := len(b.writesOf()); n != 1 {
			t.Errorf("%s: %d writes", reason, n)
		}
		if !b.complete("east") {
			t.Errorf("%s was not undone: %+v", reason, b.profile("east"))
		}
	}
}

// TestForeign expects that what belongs to others is neither changed nor deleted.
func TestForeign(t *testing.T) {
	ours := map[string]string{"registry.clusterregistry.io/hub": "registries"}
	for _, test := range []struct {
		reason, manager string
		labels          map[string]string
	}{
		{"another manager", "karmada", nil},
		{"another manager, with our label", "karmada", ours},
		{"our manager, without the label", profiles.Manager(), map[string]string{clusterprofile.ManagerLabel: profiles.Manager()}},
		{"another registry of the name", profiles.Manager(), map[string]string{"registry.clusterregistry.io/hub": "elsewhere"}},
	} {
		b := newBench(t, "")
		foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": test.manager}}}}
		foreign.SetName("east")
		foreign.SetNamespace("a")
		foreign.SetLabels(test.labels)
		b.host.save(foreign)
		b.put(member("east"))
		b.pass(time.Minute)
		expectState(t, b, test.reason, contract.FunctionRunning, `are left alone: "east"`)
		b.drop("east")
		b.pass(time.Minute)
		expectWrites(t, b, test.reason)
		expectState(t, b, test.reason+", without the cluster", contract.FunctionRunning, "")
		b.put(member("east"))
		b.host.remove("east")
		expectWrites(t, b, test.reason+" is deleted", "create east", "apply main east", "apply status east")
		expectState(t, b, test.reason+" is deleted", contract.FunctionRunning, "")
	}
}

// TestForeignMeanwhile expects that a profile that another makes between two looks stays.
func TestForeignMeanwhile(t *testing.T) {
	b := newBench(t, "")
	b.host.fail = func(string) error { return apierrors.NewAlreadyExists(clusterprofile.Resource.GroupResource(), "east") }
	b.put(member("east"))
	expectWrites(t, b, "another was faster")
	expectState(t, b, "another was faster", contract.FunctionRunning, "")
}

// TestFinalizers waits for the finalizers of others, and makes a profile again once it is gone.
func TestFinalizers(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"), member("west"))
	b.host.edit("east", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"argoproj.io/cluster-profile-finalizer"}) })
	b.drop("east")
	b.pass(20 * time.Second)
	b.writesOf()
	if p := b.profile("east"); p == nil || p.DeletionTimestamp == nil {
		t.Fatalf("it is not being deleted: %+v", p)
	}
	expectState(t, b, "at first", contract.FunctionRunning, "")
	b.pass(2 * time.Minute)
	expectState(t, b, "after a while", contract.FunctionRunning, `argoproj.io/cluster-profile-finalizer: "east"`)
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "the cluster is back, and the profile not gone")
	b.host.edit("east", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	expectWrites(t, b, "it is gone", "create east", "apply main east", "apply status east")
	expectState(t, b, "it is gone", contract.FunctionRunning, "")
}

func TestDeletion(t *testing.T) {
	b := newBench(t, "tier=gold")
	silver := func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" }
	b.put(member("east"), member("west"), member("north"), member("south"), member("center", silver))
	if b.profile("center") != nil {
		t.Error("a cluster that is not selected has a profile")
	}
	b.writesOf()

	b.drop("east")
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "deleted, and made again at once")

	b.drop("east")
	b.put(member("west", silver))
	b.queue.Add(sweep)
	b.settle()
	expectWrites(t, b, "at once")
	b.pass(settle + 2*time.Second)
	got := b.writesOf()
	slices.Sort(got)
	if want := []string{"delete east", "delete west"}; !reflect.DeepEqual(got, want) {
		t.Errorf("deleted and unselected: %q", got)
	}
	b.put(member("west"))
	expectWrites(t, b, "selected again", "create west", "apply main west", "apply status west")

	// The informer has missed more than the registry can tell.
	for reason, refusal := range map[string]error{
		"unavailable":     apierrors.NewServiceUnavailable("no endpoints"),
		"not served here": apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1beta1.Resource("clusters"), "south", "404 page not found", 0, true),
		"forbidden":       apierrors.NewForbidden(v1beta1.Resource("clusters"), "south", nil),
	} {
		b.refusal = refusal
		b.drop("south")
		b.pass(time.Minute)
		expectWrites(t, b, reason)
		expectState(t, b, reason, contract.FunctionFailing, `can't be deleted: "south"`)
		b.refusal = nil
		b.put(member("south"))
		b.pass(20 * time.Second)
		expectState(t, b, reason+", for a while", contract.FunctionRunning, "")
	}

	// The informer has missed that it is back.
	delete(b.live, "north")
	_ = b.entries.Delete(member("north"))
	b.queue.Add("north")
	b.settle()
	b.live["north"] = member("north")
	b.pass(time.Minute)
	expectWrites(t, b, "the registry still has it")
}

// TestMassDeletion expects that a registry that seems to be emptied takes no profiles with it.
func TestMassDeletion(t *testing.T) {
	fleet := []string{"a", "b", "c", "d", "e", "f"}
	b := newBench(t, "")
	for _, name := range fleet {
		b.put(member(name))
	}
	b.writesOf()
	b.trouble = errors.New("connection refused")
	b.drop("a")
	b.pass(10 * time.Minute)
	expectWrites(t, b, "while the registry can't be watched")
	b.trouble = nil

	b.drop("b", "c", "d", "e", "f")
	b.pass(time.Hour)
	expectWrites(t, b, "an empty registry")
	expectState(t, b, "an empty registry", contract.FunctionRunning, "kubectl delete clusterprofiles.multicluster.x-k8s.io --namespace=a a b c d e f")

	for _, name := range fleet[1:] {
		b.put(member(name))
	}
	b.pass(time.Minute)
	expectWrites(t, b, "it is back, but for one", "delete a")
	expectState(t, b, "it is back, but for one", contract.FunctionRunning, "")

	// A person decides.
	b.drop("b", "c", "d")
	b.pass(time.Hour)
	expectState(t, b, "three of five", contract.FunctionRunning, `3 of 5 ClusterProfiles ("b", "c", "d")`)
	b.host.remove("b")
	b.pass(time.Minute)
	got := b.writesOf()
	slices.Sort(got)
	if !slices.Equal(got, []string{"delete c", "delete d"}) {
		t.Errorf("two of four: %q", got)
	}

	// Three are deleted where they are not more than half, and so are those that go one by one.
	b.put(member("g"), member("h"), member("i"), member("j"), member("k"))
	b.writesOf()
	b.drop("g", "h", "i")
	b.pass(time.Minute)
	if n := len(b.writesOf()); n != 3 {
		t.Errorf("three of seven: %d writes", n)
	}
	for _, name := range []string{"j", "k"} {
		b.drop(name)
		b.pass(20 * time.Second)
		expectWrites(t, b, "one by one", "delete "+name)
	}

	// As few as two are always deleted.
	b.drop("e", "f")
	b.pass(time.Minute)
	if len(b.writesOf()) != 2 {
		t.Error("the last two stay")
	}
}

func TestMassDeletionOfMany(t *testing.T) {
	b := newBench(t, "")
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("c-%02d", i))
		b.put(member(names[i]))
	}
	b.drop(names...)
	b.pass(time.Minute)
	expectState(t, b, "a hundred", contract.FunctionRunning, `"c-04" and 95 more) are no longer`)
	expectState(t, b, "a hundred", contract.FunctionRunning, "made again: kubectl delete clusterprofiles.multicluster.x-k8s.io --namespace=a --selector=registry.clusterregistry.io/hub=registries")
}

func TestFailures(t *testing.T) {
	b := newBench(t, "")
	failure := errors.New(".status.accessProviders: field not declared in schema")
	b.host.fail = func(string) error { return failure }
	b.put(member("east"))
	expectState(t, b, "once", contract.FunctionRunning, "")
	b.pass(10 * time.Second)
	expectState(t, b, "again and again", contract.FunctionFailing, "the installed CRD is of another release")
	select {
	case <-b.doubt:
	default:
		t.Error("a failure does not have the namespace looked at")
	}
	b.host.fail = nil
	b.pass(30 * time.Second)
	expectState(t, b, "no longer", contract.FunctionRunning, "")
	b.pass(time.Minute)
	if !b.complete("east") {
		t.Errorf("after failures: %+v", b.profile("east"))
	}

	// Between two writes of a profile that is there, nothing fails, and the last one still counts.
	b.host.fail = func(string) error { return errors.New("no") }
	b.put(member("east", version1("v1.38.0")))
	b.pass(2 * time.Minute)
	expectState(t, b, "a change that fails again and again", contract.FunctionFailing, `can't be written: "east"`)
	b.host.fail = nil
	b.pass(time.Minute)
	expectState(t, b, "a change that succeeds", contract.FunctionRunning, "")

	invalid := apierrors.NewInvalid(profiles.Kind().GroupKind(), "west", nil)
	b.host.fail = func(write string) error {
		if strings.HasSuffix(write, " west") {
			return invalid
		}
		return nil
	}
	b.put(member("west"))
	b.pass(time.Minute)
	expectState(t, b, "one of two is not valid", contract.FunctionRunning, `can't be written: "west"`)
	b.host.fail = func(string) error { return invalid }
	b.put(member("east", version1("v1.39.0")))
	b.pass(2 * time.Minute)
	expectState(t, b, "none is valid", contract.FunctionFailing, `can't be written: "east", "west"`)
	b.host.fail = nil
	b.drop("west")
	b.pass(2 * time.Minute)
	b.writesOf()
	expectState(t, b, "all are valid again", contract.FunctionRunning, "")

	b.host.fail = func(write string) error {
		if strings.HasPrefix(write, "delete") {
			return errors.New("no")
		}
		return nil
	}
	b.drop("east")
	b.pass(time.Minute)
	expectState(t, b, "a deletion that fails", contract.FunctionFailing, "can't be deleted")
	b.host.fail = nil
	b.pass(20 * time.Second)
	expectState(t, b, "a deletion that succeeds", contract.FunctionRunning, "")
	if b.profile("east") != nil {
		t.Error("it is still there")
	}
}
