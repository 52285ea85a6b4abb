package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fleet is a registry, a selection and the time.
type fleet struct {
	t       testing.TB
	program *Program
	spec    operatorv1alpha1.ClusterSelectionSpec
	// clusters are in the registry; hidden are those that the namespace may not see.
	clusters map[string]*v1beta1.Cluster
	hidden   map[string]bool
	slots    map[string]int
	now      time.Time
	changed  time.Time
	is       []operatorv1alpha1.ClusterDecision
	decision Decision
	edited   bool
}

// newFleet returns one with clusters, which come in the order of their property rank.
func newFleet(t testing.TB, limit, seconds int, names string) *fleet {
	f := &fleet{t: t, program: compiled(t, "cluster.labels[?'out'].orValue('') == ''", "double(cluster.properties[?'rank'].orValue('5'))"),
		clusters: map[string]*v1beta1.Cluster{}, hidden: map[string]bool{}, slots: map[string]int{}, now: noon}
	f.spec.Limit, f.spec.StabilizationSeconds = int32(limit), ptr.To(int32(seconds))
	for _, name := range strings.Fields(names) {
		f.add(name)
	}
	f.decide()
	return f
}

func (f *fleet) add(name string) {
	f.clusters[name] = &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	f.slots[name] = len(f.slots)
}

func (f *fleet) rank(name, rank string) {
	f.clusters[name].Status = &v1beta1.ClusterStatus{Properties: []v1beta1.Property{{Name: "rank", Value: rank}}}
}

func (f *fleet) out(name string, is bool) {
	f.clusters[name].Labels = map[string]string{}
	if is {
		f.clusters[name].Labels["out"] = "yes"
	}
}

func (f *fleet) taint(name string, effect v1beta1.TaintEffect) {
	f.clusters[name].Spec.Taints = []v1beta1.Taint{{Key: "k", Value: "v", Effect: effect}}
}

// decide decides once, as the controller does, and returns what came and went.
func (f *fleet) decide() (added, removed []string) {
	f.t.Helper()
	views, all := map[string]*View{}, []*View{}
	for name, c := range f.clusters {
		if !f.hidden[name] {
			views[name] = NewView(c, f.slots[name], nil)
			all = append(all, views[name])
		}
	}
	evaluated, err := (&Evaluator{Program: f.program}).Run(f.t.Context(), all)
	if err != nil {
		f.t.Fatal(err)
	}
	f.decision = f.program.Decide(Input{
		Spec: f.spec, Candidates: evaluated.Candidates, Previous: f.is, Changed: f.changed, Edited: f.edited, Now: f.now,
		Visible:    func(name string) *View { return views[name] },
		Registered: func(name string) bool { return f.clusters[name] != nil },
	})
	before := f.is
	f.is, f.edited = f.decision.Clusters, false
	if !SameClusters(before, f.is) {
		f.changed = f.now
	}
	was, now := namesOf(before), namesOf(f.is)
	for _, name := range now {
		if !slices.Contains(was, name) {
			added = append(added, name)
		}
	}
	for _, name := range was {
		if !slices.Contains(now, name) {
			removed = append(removed, name)
		}
	}
	return added, removed
}

// after decides when some time has passed.
func (f *fleet) after(seconds int) {
	f.t.Helper()
	f.now = f.now.Add(time.Duration(seconds) * time.Second)
	f.decide()
}

func namesOf(decisions []operatorv1alpha1.ClusterDecision) []string {
	var out []string
	for _, d := range decisions {
		out = append(out, d.ClusterName)
	}
	return out
}

// want fails unless the decisions are these: a mark behind a name is for the reason.
func (f *fleet) want(want string) {
	f.t.Helper()
	marks := map[operatorv1alpha1.DecisionReason]string{operatorv1alpha1.DecisionNotMatching: "-", operatorv1alpha1.DecisionOutranked: "<", operatorv1alpha1.DecisionMissing: "?"}
	var got []string
	for _, d := range f.is {
		if (d.Since == nil) != (d.Reason == operatorv1alpha1.DecisionMatching) {
			f.t.Errorf("%s is %s since %v", d.ClusterName, d.Reason, d.Since)
		}
		got = append(got, d.ClusterName+marks[d.Reason])
	}
	if strings.Join(got, " ") != want {
		f.t.Errorf("the decisions are %q, want %q", strings.Join(got, " "), want)
	}
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"a cluster that does not match any more stays for a while, and is followed by the next": func(t *testing.T) {
			f := newFleet(t, 2, 60, "a b c")
			f.want("a b")
			f.out("a", true)
			f.after(1)
			f.want("a- b")
			if want := noon.Add(60 * time.Second); !f.decision.Next.Equal(want) {
				t.Errorf("the next decision is due at %v, want %v", f.decision.Next, want)
			}
			f.after(59)
			f.want("b a-") // the order is old enough
			f.after(1)
			f.want("b c")
		},
		"one that matches again in time stays": func(t *testing.T) {
			f := newFleet(t, 2, 60, "a b c")
			f.out("a", true)
			f.after(1)
			f.out("a", false)
			f.after(50)
			f.out("a", true)
			f.after(20)
			f.want("b a-")
			f.out("a", false)
			f.after(70)
			f.want("a b")
		},
		"one that others have come before stays for a while": func(t *testing.T) {
			f := newFleet(t, 1, 60, "a b")
			f.rank("b", "1")
			f.after(59)
			f.want("a<")
			f.after(60)
			f.want("b")
		},
		"without a time, everything is at once": func(t *testing.T) {
			f := newFleet(t, 1, 0, "a b")
			f.rank("b", "1")
			f.after(0)
			f.want("b")
		},
		"the order of the same clusters changes once in a while": func(t *testing.T) {
			f := newFleet(t, 3, 60, "a b c")
			f.rank("c", "1")
			f.after(59)
			f.want("a b c")
			f.after(1)
			f.want("c a b")
			f.rank("c", "9")
			f.after(30)
			f.want("c a b")
		},
		"free places are filled at once": func(t *testing.T) {
			f := newFleet(t, 3, 60, "a b")
			f.add("c")
			f.after(0)
			f.want("a b c")
		},
		"a change of the spec takes effect at once": func(t *testing.T) {
			f := newFleet(t, 3, 60, "a b c")
			f.out("a", true)
			f.spec.Limit, f.edited = 1, true
			f.after(0)
			f.want("b")
		},
		"one that can't be seen goes at once": func(t *testing.T) {
			f := newFleet(t, 3, 60, "a b c")
			f.hidden["a"], f.hidden["b"], f.hidden["c"] = true, true, true
			f.after(0)
			f.want("")
		},
		"one that is gone goes at once": func(t *testing.T) {
			f := newFleet(t, 3, 60, "a b c")
			delete(f.clusters, "a")
			f.after(0)
			f.want("b c")
		},
		"of a registry that was emptied, all stay until a person says so": func(t *testing.T) {
			f := newFleet(t, 4, 60, "a b c d")
			for _, name := range []string{"a", "b", "c"} {
				delete(f.clusters, name)
			}
			f.after(10000)
			f.want("d a? b? c?")
			if f.decision.Missing != 3 {
				t.Errorf("%d are missing, want 3", f.decision.Missing)
			}
			f.add("a")
			f.after(1)
			f.want("a d") // no more than half
			f = newFleet(t, 4, 60, "a b c d")
			clear(f.clusters)
			f.after(1)
			f.want("a? b? c? d?")
			f.edited = true
			f.after(1)
			f.want("")
		},
		"taints act as on pods": func(t *testing.T) {
			f := newFleet(t, 2, 60, "a b c d")
			f.want("a b")
			f.taint("a", v1beta1.TaintNoSchedule)
			f.taint("c", v1beta1.TaintNoSchedule)
			f.taint("b", v1beta1.TaintNoExecute)
			f.after(0)
			f.want("a d")
			f.spec.Tolerations, f.edited = []operatorv1alpha1.ClusterToleration{{Key: "k", Operator: operatorv1alpha1.TolerationEqual, Value: "v", Effect: "NoExecute"}}, true
			f.after(0)
			f.want("a b")
			f.taint("a", v1beta1.TaintPreferNoSchedule)
			f.edited = true
			f.after(0)
			f.want("b d")
		},
	} {
		t.Run(name, test)
	}
}

func TestTolerations(t *testing.T) {
	taint := v1beta1.Taint{Key: "k", Value: "v", Effect: v1beta1.TaintNoSchedule}
	for _, test := range []struct {
		toleration operatorv1alpha1.ClusterToleration
		want       bool
	}{
		{operatorv1alpha1.ClusterToleration{Operator: "Exists"}, true},
		{operatorv1alpha1.ClusterToleration{Key: "k", Operator: "Exists"}, true},
		{operatorv1alpha1.ClusterToleration{Key: "k", Value: "v"}, true},
		{operatorv1alpha1.ClusterToleration{Key: "k", Value: "w"}, false},
		{operatorv1alpha1.ClusterToleration{Key: "j", Operator: "Exists"}, false},
		{operatorv1alpha1.ClusterToleration{Key: "k", Operator: "Exists", Effect: "NoExecute"}, false},
		{operatorv1alpha1.ClusterToleration{Value: "v"}, false},
	} {
		if got := tolerated(taint, []operatorv1alpha1.ClusterToleration{test.toleration}); got != test.want {
			t.Errorf("%+v tolerates it: %v, want %v", test.toleration, got, test.want)
		}
	}
	if got := repels([]v1beta1.Taint{{Key: "k", Effect: "Unheard"}}, nil); got != noNew {
		t.Errorf("an effect of a later release is %v, want that of NoSchedule", got)
	}
}
