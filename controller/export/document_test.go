package export

import (
	"encoding/base64"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/argocd"
	"github.com/clusterregistry/operator/controller/export/clusterprofile"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// newDocuments returns a bench of a format that has nothing to publish of some clusters.
func newDocuments(t *testing.T) *bench {
	t.Helper()
	secrets := argocd.New(source)
	in := format.Target{Namespace: "a", SignIn: []format.SignIn{{Provider: "secretreader", Hosts: []string{"*.example.com"}, Exec: &format.Exec{Command: "/plugin"}}}}
	if err := in.SignIn[0].Complete(secrets.Kind().SignIn); err != nil {
		t.Fatal(err)
	}
	return newBenchOf(t, "", in, secrets)
}

func without(c *v1beta1.Cluster) { c.Spec.Access = nil }

// TestNothingToPublish expects that clusters without anything to publish are named, with why, and
// that what was published of them goes like that of clusters that are gone: not when it is more
// than half at once, as after a mistake in the export.
func TestNothingToPublish(t *testing.T) {
	b := newDocuments(t)
	b.put(member("east"), member("west"), member("north"), member("south", without))
	b.pass(time.Minute)
	expectWrites(t, b, "three of four", "create cluster-east", "apply main cluster-east", "create cluster-west", "apply main cluster-west", "create cluster-north", "apply main cluster-north")
	expectState(t, b, "three of four", contract.FunctionRunning, `of some clusters: "south". Of the first: The entry has no access`)
	b.pass(time.Hour)
	expectWrites(t, b, "nothing changes")

	b.put(member("east", without))
	expectWrites(t, b, "at once")
	b.pass(time.Minute)
	expectWrites(t, b, "one of three", "delete cluster-east")
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "access again", "create cluster-east", "apply main cluster-east")

	b.put(member("east", without), member("west", without), member("north", without))
	b.pass(time.Hour)
	expectWrites(t, b, "all of them")
	expectState(t, b, "all of them", contract.FunctionRunning, "kubectl delete secrets --namespace=a cluster-east cluster-north cluster-west")
	b.put(member("east"), member("west"), member("north"))
	b.pass(time.Minute)
	expectWrites(t, b, "they are back")
}

// TestWithdrawn expects that what leads where no one may be led is deleted at once.
func TestWithdrawn(t *testing.T) {
	for reason, change := range map[string]func(b *bench){
		"another cluster answers": func(b *bench) {
			b.put(member("east", func(c *v1beta1.Cluster) {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
			}))
		},
		"a refused address": func(b *bench) {
			b.answers["https://inside.example.com"] = refused
			b.put(moved(2, 2, "https://inside.example.com"))
		},
	} {
		b := newDocuments(t)
		b.put(moved(1, 1, "https://east.example.com"))
		b.pass(time.Minute)
		b.writesOf()
		change(b)
		expectWrites(t, b, reason, "delete cluster-east")
	}
}

// TestPrivateKinds expects that what others have of a kind whose objects are not read is held when
// it is in the way.
func TestPrivateKinds(t *testing.T) {
	b := newDocuments(t)
	b.host.fail = func(string) error {
		return apierrors.NewAlreadyExists(clusterprofile.Resource.GroupResource(), "cluster-east")
	}
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "another has it")
	expectState(t, b, "another has it", contract.FunctionRunning, `are left alone: "cluster-east"`)
	b.host.fail = nil
	b.pass(time.Minute)
	expectWrites(t, b, "it is gone", "create cluster-east", "apply main cluster-east")
	expectState(t, b, "it is gone", contract.FunctionRunning, "")

	// Someone takes it out of the controller's hands.
	b.host.edit("cluster-east", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	b.drop("east")
	b.pass(time.Minute)
	expectWrites(t, b, "taken out of the controller's hands")
}

// TestAnotherEntryOfTheName expects that what was verified of an entry says nothing of another one
// that takes its name, though it leads to the same place.
func TestAnotherEntryOfTheName(t *testing.T) {
	b := newDocuments(t)
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "verified", "create cluster-east", "apply main cluster-east")
	b.answers["https://east.example.com:6443"] = silent
	b.host.remove("cluster-east")
	b.put(member("east", func(c *v1beta1.Cluster) { c.UID, c.Generation = "another", 2 }))
	b.writesOf()
	b.pass(time.Hour)
	expectWrites(t, b, "another entry, which is never reached")
}

// TestOnlyOwnAreRead expects that objects of others are not even listed where they are none of this
// program's business.
func TestOnlyOwnAreRead(t *testing.T) {
	for selector, b := range map[string]*bench{"registry.clusterregistry.io/hub=registries,exports.clusterregistry.io/format=ArgoCDSecret": newDocuments(t), "": newBench(t, "")} {
		var options metav1.ListOptions
		if tweak := b.tweak(); tweak != nil {
			tweak(&options)
		}
		if options.LabelSelector != selector {
			t.Errorf("it lists those with %q, want %q", options.LabelSelector, selector)
		}
	}
}

// TestOneServer expects that no two Secrets lead to one server, by which Argo CD tells clusters
// apart: the first one stays, whatever is written of others, and the next one takes its place once
// it is gone.
func TestOneServer(t *testing.T) {
	at := func(name, url string) *v1beta1.Cluster {
		return member(name, func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = url })
	}
	const shared = "https://shared.example.com:6443"
	b := newDocuments(t)
	b.put(at("west", shared), at("north", "https://north.example.com"))
	b.pass(time.Minute)
	expectWrites(t, b, "one of each", "create cluster-west", "apply main cluster-west", "create cluster-north", "apply main cluster-north")
	b.put(at("east", shared+"/"))
	b.pass(time.Hour)
	expectWrites(t, b, "another one with the server of the first")
	expectState(t, b, "another one with the server of the first", contract.FunctionRunning, `of some clusters: "east". Of the first: Cluster "west" has the same server, https://shared.example.com:6443`)

	moved := at("north", shared)
	moved.Generation = 2
	b.put(moved)
	b.pass(time.Hour)
	expectWrites(t, b, "one that moves there, whose own stays")
	expectState(t, b, "one that moves there, whose own stays", contract.FunctionRunning, `of some clusters: "east", "north"`)
	b.drop("north")
	b.pass(time.Minute)
	expectWrites(t, b, "it is gone", "delete cluster-north")

	b.drop("west")
	b.pass(3 * time.Minute)
	expectWrites(t, b, "the first one is gone", "delete cluster-west", "create cluster-east", "apply main cluster-east")
	expectState(t, b, "the first one is gone", contract.FunctionRunning, "")
}

// TestServersChangeHands expects that clusters that are renamed, all at once, or that swap their
// servers, have Secrets afterwards, each for one server.
func TestServersChangeHands(t *testing.T) {
	at := func(name, url string, generation int64) *v1beta1.Cluster {
		return member(name, func(c *v1beta1.Cluster) {
			c.Spec.Endpoints[0].URL, c.Generation = "https://"+url+".example.com", generation
		})
	}
	b := newDocuments(t)
	names := []string{"east", "west", "north", "south"}
	for _, name := range names {
		b.put(at(name, name, 1))
	}
	b.pass(time.Minute)
	b.put(at("east", "west", 2), at("west", "east", 2))
	b.pass(5 * time.Minute)
	for name, url := range map[string]string{"east": "west", "west": "east", "north": "north", "south": "south"} {
		have, err := b.stored(name)
		if err != nil || have == nil || b.Format.Leads(have) != "https://"+url+".example.com" {
			t.Errorf("swapped: the Secret of %s is %v, %v", name, have, err)
		}
	}
	b.drop(names...)
	for _, name := range names {
		b.put(at("new-"+name, name, 1))
	}
	b.pass(5 * time.Minute)
	for _, name := range names {
		before, _ := b.stored(name)
		now, _ := b.stored("new-" + name)
		if before != nil || now == nil || b.Format.Leads(now) != "https://"+name+".example.com" {
			t.Errorf("renamed: the Secret of %s is %v, and that of new-%[1]s %v", name, before, now)
		}
	}
}

// TestOneServerAtOnce expects one Secret of two clusters although no one has seen the first one yet,
// and one to go where there are two.
func TestOneServerAtOnce(t *testing.T) {
	b := newDocuments(t)
	if first, second := b.occupant("east", "https://a"), b.occupant("west", "https://a"); first != "" || second != "east" || b.occupant("east", "https://a") != "" {
		t.Errorf("of two that ask, %q and %q have the server", first, second)
	}
	b.time.Step(patience)
	if by := b.occupant("west", "https://a"); by != "" {
		t.Errorf("a claim that came to nothing is %q's", by)
	}

	b.put(member("east"), member("west"), member("north"), member("south"))
	b.pass(time.Minute)
	b.writesOf()
	seen, err := b.stored("west")
	if err != nil {
		t.Fatal(err)
	}
	second := seen.DeepCopy()
	second.Object["data"].(map[string]any)["server"] = base64.StdEncoding.EncodeToString([]byte("https://east.example.com:6443"))
	_ = b.host.store.Update(second)
	b.put(member("west", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://east.example.com:6443" }))
	b.pass(time.Minute)
	expectWrites(t, b, "two Secrets with one server", "delete cluster-west")
}
