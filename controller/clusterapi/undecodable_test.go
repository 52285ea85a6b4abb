package clusterapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// stored is a Cluster as a host cluster has it, with a spec and a mark of its writer's own.
func stored(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"a","name":%q,"uid":"uid-%[1]s","resourceVersion":"7","labels":{"env":"prod"},"annotations":{"operator.clusterregistry.io/undecodable":"forged"}},"spec":%[2]s}`, name, spec)
}

// TestUndecodableAlone reads Clusters of which one can't be decoded: the others are read as if it
// was not there, and of that one the metadata is known, and which field it is.
func TestUndecodableAlone(t *testing.T) {
	east, west := stored("east", `{"controlPlaneEndpoint":{"host":"east","port":"many"}}`), stored("west", `{"controlPlaneEndpoint":{"host":"west","port":6443}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("watch") != "":
			for _, object := range []string{east, west} {
				fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, object)
			}
			fmt.Fprint(w, `{"type":"BOOKMARK","object":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"resourceVersion":"9"}}}`)
			fmt.Fprint(w, `{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Expired","code":410}}`)
		case strings.HasSuffix(r.URL.Path, "/clusters"):
			fmt.Fprintf(w, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"ClusterList","metadata":{"resourceVersion":"8","continue":"next"},"items":[%s,%s]}`, east, west)
		default:
			fmt.Fprint(w, east)
		}
	}))
	defer server.Close()
	source, err := NewSource(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	check := func(how string, objects ...*clusterv1.Cluster) {
		t.Helper()
		for _, object := range objects {
			why := undecodable(object)
			switch {
			case object.UID != "uid-east" && object.UID != "uid-west" || object.Labels["env"] != "prod" || object.ResourceVersion != "7":
				t.Errorf("%s: %+v", how, object.ObjectMeta)
			case object.Name == "east" && !strings.Contains(why, ".spec.controlPlaneEndpoint.port"):
				t.Errorf("%s: of the one that can't be decoded it is said %q", how, why)
			case object.Name == "west" && (why != "" || object.Spec.ControlPlaneEndpoint.Port != 6443):
				t.Errorf("%s: of the other one it is said %q: %+v", how, why, object.Spec)
			}
		}
	}
	list, err := source.List(t.Context(), "a", metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.ResourceVersion != "8" || list.Continue != "next" {
		t.Fatalf("%+v, %v", list, err)
	}
	check("listed", &list.Items[0], &list.Items[1])
	one, err := source.Get(t.Context(), "a", "east")
	if err != nil {
		t.Fatal(err)
	}
	check("read", one)
	watching, err := source.Watch(t.Context(), "a", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var events []watch.Event
	for event := range watching.ResultChan() {
		events = append(events, event)
	}
	if len(events) != 4 || events[2].Type != watch.Bookmark || events[2].Object.(*clusterv1.Cluster).ResourceVersion != "9" || events[3].Type != watch.Error || events[3].Object.(*metav1.Status).Code != 410 {
		t.Fatalf("%+v", events)
	}
	stopped, err := source.Watch(t.Context(), "a", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stopped.Stop() // though no one reads what it tells
	for range stopped.ResultChan() {
	}
	check("watched", events[0].Object.(*clusterv1.Cluster), events[1].Object.(*clusterv1.Cluster))
}

// TestUndecodableIsHeld has a Cluster become one that can't be decoded, and one again that can:
// its entry says so meanwhile and stays, with what was last said of the cluster, and a new one
// gets no entry.
func TestUndecodableIsHeld(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Policy = PolicyDelete }, cluster("east"))
	b.must("east")
	before := b.east()
	broken := func(name string) *clusterv1.Cluster {
		return cluster(name, func(c *clusterv1.Cluster) {
			c.Spec, c.Status = clusterv1.ClusterSpec{}, clusterv1.ClusterStatus{}
			c.Annotations = map[string]string{undecodableMark: "the controller can't decode its field .spec.paused: correct it"}
		})
	}
	b.see(broken("east"))
	b.see(broken("west"))
	b.must("west")
	if hold := b.held()[keyOf(cluster("west"))]; hold.reason != HeldUndecodable || len(b.writes()) > 0 {
		t.Errorf("one without an entry: %+v, %v", hold, b.writes())
	}
	b.must("east")
	if writes := b.writes(); len(writes) != 1 || writes[0] != "update status" {
		t.Errorf("it is told by %v", writes)
	}
	now := b.east()
	if now == nil || joinedOf(now) != "Unknown Undecodable" || now.Spec.Endpoints[0].URL != before.Spec.Endpoints[0].URL || len(ownConditions(now)) != len(ownConditions(before)) {
		t.Fatalf("the entry: %+v", now)
	}
	for _, c := range now.Status.Conditions {
		if c.Type == v1beta1.ConditionJoined && !strings.Contains(c.Message, ".spec.paused") {
			t.Errorf("it says %q", c.Message)
		}
	}
	if state, message := b.state(); !strings.Contains(message, ".spec.paused") {
		t.Errorf("%s: %s", state, message)
	}
	if b.must("east"); len(b.writes()) > 0 {
		t.Errorf("it is told again: %v", b.writes())
	}
	b.see(cluster("east"))
	if b.must("east"); joinedOf(b.east()) != "True Imported" || b.held()[keyOf(cluster("east"))] != (hold{}) {
		t.Errorf("corrected: %s, %+v", joinedOf(b.east()), b.held())
	}
}
