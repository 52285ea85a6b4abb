package clusterapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// imported is an entry that says that its Cluster is there.
func imported() *v1beta1.Cluster {
	is := []metav1.Condition{{Type: "Joined", Status: metav1.ConditionTrue, Reason: ReasonImported, LastTransitionTime: metav1.NewTime(begin.Add(-24 * time.Hour))}}
	entry := entryOf("east", "uid-east")
	entry.Status = &v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: "v1.37.1"}, Conditions: is, Reporters: []v1beta1.Reporter{{Name: Reporter, Conditions: is}}}
	return entry
}

// TestGone says what becomes of an entry whose Cluster is missed, right then and after the
// grace period.
func TestGone(t *testing.T) {
	deletes := func(c *Config) { c.Policy = PolicyDelete }
	paused := func(e *v1beta1.Cluster) {
		e.Status.Reporters[0].Conditions = append(e.Status.Reporters[0].Conditions, metav1.Condition{Type: "Paused", Status: metav1.ConditionTrue})
	}
	for _, test := range []struct {
		reason  string
		config  func(*Config)
		entry   func(*v1beta1.Cluster)
		arrange func(*bench)
		fails   string
		want    string // empty: as it was, with no write
		kept    string
		after   bool // the entry is there after the grace period
	}{
		{reason: "retained", want: "False Deleted", after: true},
		{reason: "deleted", config: deletes, want: "False Deleted"},
		{reason: "deleted, and kept by a person", config: deletes, entry: func(e *v1beta1.Cluster) { e.Annotations[KeepAnnotation] = "please" }, want: "Unknown Kept", kept: "please", after: true},
		{reason: "moved", config: deletes, arrange: func(b *bench) {
			b.lose(cluster("east", func(c *clusterv1.Cluster) { c.Annotations = map[string]string{moveAnnotation: ""} }))
		}, want: "Unknown Moved", kept: ReasonMoved, after: true},
		{reason: "moved, and marked before", config: deletes, entry: func(e *v1beta1.Cluster) { e.Annotations[KeepAnnotation] = ReasonMoved }, want: "Unknown Moved", kept: ReasonMoved, after: true},
		{reason: "gone while it was paused", config: deletes, entry: paused, want: "Unknown Moved", kept: ReasonMoved, after: true},
		{reason: "made again", config: deletes, arrange: func(b *bench) {
			b.see(cluster("east", func(c *clusterv1.Cluster) { c.UID = "another" }))
		}, want: "False Deleted"},
		{reason: "no Cluster API", config: deletes, arrange: func(b *bench) { b.source.served = ServedNo }, want: "Unknown ClusterAPIRemoved", kept: ReasonClusterAPIRemoved, after: true},
		{reason: "the CRD is being deleted", config: deletes, arrange: func(b *bench) { b.source.served = ServedEnding }, want: "Unknown ClusterAPIRemoved", kept: ReasonClusterAPIRemoved, after: true},
		{reason: "another version alone", config: deletes, arrange: func(b *bench) { b.source.served = ServedOther }, want: "Unknown ClusterAPIRemoved", kept: ReasonClusterAPIRemoved, after: true},
		{reason: "another namespace of the name", config: deletes, entry: func(e *v1beta1.Cluster) { e.Annotations[NamespaceAnnotation] = "before" }, want: "Unknown NamespaceReplaced", kept: ReasonNamespaceReplaced, after: true},
		{reason: "the namespace lets it in no more", config: deletes, arrange: func(b *bench) { b.relabel(map[string]string{"registry.clusterregistry.io/hub": "others"}) }, after: true},
		{reason: "the namespace is gone", config: deletes, arrange: func(b *bench) {
			if err := b.host.CoreV1().Namespaces().Delete(b.t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				b.t.Fatal(err)
			}
		}, after: true},
		{reason: "there after all", config: deletes, arrange: func(b *bench) { b.source.objects[keyOf(cluster("east"))] = cluster("east") }, after: true},
		{reason: "no answer", config: deletes, arrange: func(b *bench) { b.source.err = errors.New("away") }, fails: "away", after: true},
		{reason: "the namespace does not answer", config: deletes, arrange: func(b *bench) {
			b.host.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
		}, fails: "away", after: true},
	} {
		entry := imported()
		if test.entry != nil {
			test.entry(entry)
		}
		b := newBench(t, test.config, entry)
		if test.arrange != nil {
			test.arrange(b)
		}
		// It may only be late.
		if err := b.run("east"); err != nil || len(b.writes()) > 0 {
			t.Errorf("%s: at once: %v, written: %v", test.reason, err, b.writes())
		}
		b.clock.Step(confirm)
		err := b.run("east")
		now := b.east()
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if test.want == "" && len(b.writes()) > 0 || test.want != "" && joinedOf(now) != test.want || now.Annotations[KeepAnnotation] != test.kept {
			t.Errorf("%s: %q, annotations %v, written: %v", test.reason, joinedOf(now), now.Annotations, b.writes())
		}
		if statusOf(now).Version.Kubernetes != "v1.37.1" {
			t.Errorf("%s: version %+v", test.reason, statusOf(now).Version)
		}
		if again := b.run("east"); (again == nil) != (test.fails == "") || len(b.writes()) > 0 {
			t.Errorf("%s: again %v, written: %v", test.reason, again, b.writes())
		}
		b.clock.Step(time.Hour - time.Second)
		if _ = b.run("east"); b.east() == nil {
			t.Errorf("%s: the entry is gone before the grace period is over", test.reason)
		}
		b.clock.Step(time.Second)
		_ = b.run("east")
		if after := b.east(); (after != nil) != test.after {
			t.Errorf("%s: after the grace period, the entry is there: %v", test.reason, after != nil)
		}
	}
}

// relabel gives the namespace other labels.
func (b *bench) relabel(labels map[string]string) {
	b.t.Helper()
	if _, err := b.host.CoreV1().Namespaces().Update(b.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: nsUID, Labels: labels}}, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// TestMadeAgain enters a Cluster of the same name once the grace period of the one before
// is over.
func TestMadeAgain(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Policy = PolicyDelete }, imported(), cluster("east", func(c *clusterv1.Cluster) { c.UID = "another" }))
	b.mustMiss("east")
	if len(b.held()) != 1 || joinedOf(b.east()) != "False Deleted" {
		t.Errorf("held: %v, %s", b.held(), joinedOf(b.east()))
	}
	b.clock.Step(time.Hour)
	b.must("east") // deletes
	b.must("east") // makes
	if now := b.east(); now == nil || now.Spec.SourceRef.UID != "another" || len(b.held()) > 0 {
		t.Errorf("%+v, held: %v", now, b.held())
	}
}

// TestDeletionPreconditions deletes what was decided of, and nothing newer.
func TestDeletionPreconditions(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Policy, c.Grace = PolicyDelete, 0 }, imported())
	b.mustMiss("east")
	for _, action := range b.registry.Actions() {
		if deletion, ok := action.(kubetesting.DeleteActionImpl); ok {
			if p := deletion.DeleteOptions.Preconditions; p == nil || *p.UID != "entry-east" || p.ResourceVersion == nil {
				t.Errorf("deleted with %+v", p)
			}
			return
		}
	}
	t.Error("not deleted")
}

// TestUnselected takes a Cluster out that is not selected any more, and back.
func TestUnselected(t *testing.T) {
	ignored := func(c *clusterv1.Cluster) { c.Labels[IgnoreLabel] = "true" }
	for _, test := range []struct {
		reason  string
		arrange func(*bench)
		gone    bool
	}{
		{"still", nil, true},
		{"selected since", func(b *bench) { b.source.objects[keyOf(cluster("east"))] = cluster("east") }, false},
		{"made again since", func(b *bench) {
			b.source.objects[keyOf(cluster("east"))] = cluster("east", ignored, func(c *clusterv1.Cluster) { c.UID = "another" })
		}, false},
		{"kept by a person", func(b *bench) {
			entry := b.east()
			entry.Annotations[KeepAnnotation] = "please"
			if _, err := b.registry.ClusterregistryV1beta1().Clusters().Update(b.t.Context(), entry, metav1.UpdateOptions{}); err != nil {
				b.t.Fatal(err)
			}
		}, false},
		{"the namespace is barred", func(b *bench) { b.relabel(nil) }, false},
	} {
		b := newBench(t, func(c *Config) { c.Policy = PolicyDelete }, cluster("east", ignored), imported())
		b.must("east")
		if now := b.east(); joinedOf(now) != "False Unselected" || now.Annotations[KeepAnnotation] != "" {
			t.Errorf("%s: %s", test.reason, joinedOf(now))
		}
		if test.arrange != nil {
			test.arrange(b)
		}
		b.clock.Step(time.Hour)
		b.must("east")
		if (b.east() == nil) != test.gone {
			t.Errorf("%s: the entry is there: %v", test.reason, b.east() != nil)
		}
	}
	b := newBench(t, nil, cluster("east", ignored), imported())
	b.must("east")
	b.see(cluster("east"))
	if b.must("east"); joinedOf(b.east()) != "True Imported" {
		t.Errorf("selected again: %s", joinedOf(b.east()))
	}
}

// TestMoving marks an entry as soon as clusterctl has marked the Cluster: it takes all
// other annotations away.
func TestMoving(t *testing.T) {
	b := newBench(t, nil, cluster("east", func(c *clusterv1.Cluster) {
		c.Annotations = map[string]string{moveAnnotation: ""}
		c.Spec.ControlPlaneEndpoint.Host = "elsewhere"
	}), imported())
	b.must("east")
	now := b.east()
	if joinedOf(now) != "Unknown Moved" || now.Annotations[KeepAnnotation] != ReasonMoved || now.Spec.Endpoints[0].URL != "https://east.example.com:6443" {
		t.Errorf("%s, %v, %+v", joinedOf(now), now.Annotations, now.Spec.Endpoints)
	}
}

// TestUnread leaves entries of a namespace that is not read.
func TestUnread(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Policy, c.Grace = PolicyDelete, 0 }, imported())
	n := b.namespaces["a"]
	n.store = nil
	for _, missing := range []int{0, 1} { // once may be a server that starts
		n.unserved = missing
		b.mustMiss("east")
		if now := b.east(); now == nil || joinedOf(now) != "True Imported" {
			t.Errorf("%d looks without Cluster API: %+v", missing, now)
		}
	}
	n.unserved = 2
	if b.must("east"); joinedOf(b.east()) != "Unknown ClusterAPIRemoved" {
		t.Errorf("no Cluster API: %s", joinedOf(b.east()))
	}
	// The entries of a namespace that is not this controller's to read stay as well.
	delete(b.namespaces, "a")
	if b.must("east"); len(b.writes()) > 0 {
		t.Errorf("written: %v", b.writes())
	}
}
