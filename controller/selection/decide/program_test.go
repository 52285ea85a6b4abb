package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// entry returns a cluster with something of each kind that expressions see.
func entry(name string, change ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "gold"}},
		Spec:       v1beta1.ClusterSpec{ClusterSet: "payments", Taints: []v1beta1.Taint{{Key: "gpu", Value: "a", Effect: v1beta1.TaintNoSchedule}}},
		Status: &v1beta1.ClusterStatus{
			Conditions:  []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}},
			Version:     v1beta1.ClusterVersion{Kubernetes: "v1.37.1"},
			Properties:  []v1beta1.Property{{Name: "region", Value: "eu"}},
			Capacity:    map[string]resource.Quantity{"cpu": resource.MustParse("64")},
			Allocatable: map[string]resource.Quantity{"cpu": resource.MustParse("1500m")},
			Nodes:       &v1beta1.NodeCount{Total: 5, Ready: 4},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func compiled(t testing.TB, where string, orderBy ...string) *Program {
	t.Helper()
	spec := operatorv1alpha1.ClusterSelectionSpec{Where: where}
	for _, expression := range orderBy {
		text, descending := strings.CutPrefix(expression, "-")
		by := operatorv1alpha1.ClusterOrder{Expression: text}
		if descending {
			by.Direction = operatorv1alpha1.OrderDescending
		}
		spec.OrderBy = append(spec.OrderBy, by)
	}
	p, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestExpressions evaluates what users write of each field.
func TestExpressions(t *testing.T) {
	view := NewView(entry("a"), 0, nil)
	for _, test := range []struct {
		where         string
		matches, says string
	}{
		{"", "yes", ""},
		{"cluster.labels['tier'] == 'gold'", "yes", ""},
		{"cluster.labels['tier'] in ['silver']", "no", ""},
		{"cluster.labels['stage'] == 'prod'", "no", "no such key: stage"},
		{"cluster.labels[?'stage'].orValue('none') == 'none'", "yes", ""},
		{"cluster.properties['region'] == 'eu' && cluster.clusterSet == 'payments' && cluster.name == 'a'", "yes", ""},
		{"cluster.conditions['Available'] == 'True'", "yes", ""},
		{"cluster.allocatable['cpu'].isGreaterThan(quantity('1'))", "yes", ""},
		{"cluster.capacity['cpu'].isLessThan(quantity('64'))", "no", ""},
		{"'nvidia.com/gpu' in cluster.capacity", "no", ""},
		{"cluster.nodes.ready * 2 > cluster.nodes.total", "yes", ""},
		{"cluster.taints.exists(t, t.key == 'gpu' && t.effect == 'NoSchedule')", "yes", ""},
		{"semver(cluster.version, true).isGreaterThan(semver('1.36.0'))", "yes", ""},
		{"dyn(cluster.name)", "no", "spec.where: the value is of type string, not true or false"},
	} {
		t.Run(test.where, func(t *testing.T) {
			said, cost, err := compiled(t, test.where).evaluate(t.Context(), view)
			if said.matches != (test.matches == "yes") || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || said.failed != (err != nil) {
				t.Errorf("it is %+v with the error %v, want %s %q", said, err, test.matches, test.says)
			}
			if cost > 100 {
				t.Errorf("it costs %d", cost)
			}
		})
	}
}

// TestInvalid compiles expressions that are not valid: each error says which, where and why.
func TestInvalid(t *testing.T) {
	for _, test := range []struct {
		where, orderBy string
		says           []string
	}{
		{"labels['a'] == 'b'", "true", []string{"spec.where is not valid at line 1, column 1: undeclared reference to 'labels'", "its one variable is cluster"}},
		{"cluster.label", "true", []string{"spec.where", "column 8", "undefined field 'label'"}},
		{"cluster.name", "true", []string{"spec.where has a value of type string: write an expression whose value is true or false"}},
		{"true &&\n  (", "true", []string{"spec.where", "line 2", "Syntax error"}},
		{"true", "cluster.labels", []string{"spec.orderBy[0].expression has a value of type map(string, string)", "a number, a quantity, a string"}},
		{"true", "cluster.spec.endpoints[0].url", []string{"spec.orderBy[0].expression", "undefined field 'spec'"}},
		{"cluster.name.matches('(')", "true", []string{"spec.where", "the regular expression of matches is not valid (error parsing regexp: missing closing )"}},
		{strings.Repeat("[", 4000), "true", []string{"spec.where"}},
		{"authorizer.group('').resource('secrets').check('get').allowed()", "true", []string{"undeclared reference to 'authorizer'"}},
	} {
		t.Run(test.where[:min(20, len(test.where))], func(t *testing.T) {
			_, err := Compile(operatorv1alpha1.ClusterSelectionSpec{Where: test.where, OrderBy: []operatorv1alpha1.ClusterOrder{{Expression: test.orderBy}}})
			for _, part := range test.says {
				if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
					t.Errorf("the error is %v, want one line with %q", err, part)
				}
			}
		})
	}
}

// TestHostile evaluates expressions that would take forever, or all of the memory.
func TestHostile(t *testing.T) {
	view := NewView(entry("a", func(c *v1beta1.Cluster) {
		for i := range 128 {
			c.Status.Properties = append(c.Status.Properties, v1beta1.Property{Name: fmt.Sprint("p", i), Value: strings.Repeat("a", 4096)})
		}
	}), 0, nil)
	loop := "true"
	for i := range 6 {
		loop = fmt.Sprintf("cluster.properties.all(k%d, %s)", i, loop)
	}
	search := "cluster.properties.all(k, !cluster.properties[k].matches('" + strings.Repeat("b", 200) + "'))"
	for name, where := range map[string]string{
		"nested loops":       loop,
		"a search":           search,
		"a regex of a regex": "cluster.properties.all(k, cluster.properties.all(j, !cluster.properties[k].matches('^(b+)+$')))",
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, where)
			said, cost, err := p.evaluate(t.Context(), view)
			if said.matches || !said.failed || err == nil || !strings.Contains(err.Error(), "cost limit exceeded") || cost > 2*callLimit {
				t.Fatalf("it is %+v at a cost of %d with the error %v, want that it is stopped", said, cost, err)
			}
		})
	}
	t.Run("many clusters", func(t *testing.T) {
		views := make([]*View, 2*Budget/callLimit)
		for i := range views {
			copied := *view
			copied.slot = i
			views[i] = &copied
		}
		if _, err := (&Evaluator{Program: compiled(t, search)}).Run(t.Context(), views); !errors.Is(err, ErrBudget) {
			t.Errorf("for many clusters, the error is %v, want ErrBudget", err)
		}
	})
	t.Run("a long key", func(t *testing.T) {
		said, _, err := compiled(t, "", "cluster.properties['p1'].substring(0, 128)", "cluster.properties['p1'].substring(0, 129)").evaluate(t.Context(), view)
		if !said.matches || len(said.keys[0].text) != 128 || said.keys[1].kind != missing || err == nil || !strings.Contains(err.Error(), "the value has 129 bytes") {
			t.Errorf("it is %+v with the error %v", said, err)
		}
	})
	t.Run("a stopped program", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (&Evaluator{Program: compiled(t, "true")}).Run(ctx, []*View{view}); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want that it was stopped", err)
		}
	})
}

// TestOrder orders clusters by values of each type.
func TestOrder(t *testing.T) {
	cpu := func(text string) func(*v1beta1.Cluster) {
		return func(c *v1beta1.Cluster) {
			c.Status.Allocatable["cpu"] = resource.MustParse(text)
			c.Status.Properties[0].Value = map[bool]string{true: "eu", false: "us"}[text == "3"]
		}
	}
	var views []*View
	for i, c := range []*v1beta1.Cluster{entry("d", cpu("900m")), entry("a", cpu("3")), entry("c", cpu("20")), entry("b", cpu("3"))} {
		views = append(views, NewView(c, i, nil))
	}
	bare := entry("e")
	bare.Status = nil
	views = append(views, NewView(bare, 4, nil))
	for _, test := range []struct {
		orderBy []string
		want    string
	}{
		{nil, "abcde"},
		{[]string{"cluster.allocatable['cpu']"}, "dabce"},
		{[]string{"-cluster.allocatable['cpu']"}, "cabde"},
		{[]string{"-cluster.allocatable['cpu'].asApproximateFloat()"}, "cabde"},
		{[]string{"-cluster.properties['region']", "-cluster.name"}, "dcbae"},
		{[]string{"cluster.properties[?'region'].orValue('') == 'eu'", "-cluster.name"}, "edcba"},
		{[]string{"cluster.name == 'b' ? dyn(1) : dyn('x')", "-cluster.name"}, "bedca"},
		{[]string{"0.0 / 0.0"}, "abcde"},
	} {
		p := compiled(t, "", test.orderBy...)
		is, err := (&Evaluator{Program: p}).Run(t.Context(), views)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range p.ranked(is.Candidates, func(Candidate) bool { return false }) {
			got += c.Name
		}
		if got != test.want {
			t.Errorf("by %q it is %s, want %s", test.orderBy, got, test.want)
		}
	}
}

// TestEvaluator evaluates only clusters that have changed, and says of which one it can't.
func TestEvaluator(t *testing.T) {
	e := &Evaluator{Program: compiled(t, "cluster.labels['tier'] == 'gold'")}
	views := []*View{NewView(entry("a"), 0, nil), NewView(entry("b"), 1, nil), NewView(entry("c", func(c *v1beta1.Cluster) { c.Labels = nil }), 2, nil)}
	run := func() Evaluated {
		is, err := e.Run(t.Context(), views)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	first := run()
	if len(first.Candidates) != 2 || first.Failing != 1 || first.Example != "c" || first.Failure != "spec.where: no such key: tier" {
		t.Errorf("it is %+v", first)
	}
	before := slices.Clone(e.known)
	views[1] = NewView(entry("b", func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" }), 1, views[1])
	if second := run(); len(second.Candidates) != 1 || second.Candidates[0].Name != "a" {
		t.Errorf("after a change it is %+v", second)
	}
	if e.known[0].said != before[0].said || e.known[1].said == before[1].said {
		t.Error("it has not evaluated the cluster that changed, and no other one")
	}
	if same := NewView(entry("a", func(c *v1beta1.Cluster) {
		c.Status.Reporters = []v1beta1.Reporter{{Name: "health"}}
		c.Status.Allocatable["cpu"] = resource.MustParse("1.5")
	}), 0, views[0]); same != views[0] {
		t.Error("a change that no expression sees makes another view")
	}
}

// TestFailureStays expects the same words of an error that CEL finds in one of several places: a
// status that has other words is written, and what is written is looked at again.
func TestFailureStays(t *testing.T) {
	e := &Evaluator{Program: compiled(t, "cluster.labels.exists(k, cluster.properties[k] == 'x')")}
	views := []*View{NewView(entry("a", func(c *v1beta1.Cluster) {
		c.Labels = map[string]string{"one": "", "two": "", "three": "", "four": ""}
	}), 0, nil)}
	first := ""
	for range 100 {
		is, err := e.Run(t.Context(), views)
		if err != nil || is.Failing != 1 || !strings.Contains(is.Failure, "no such key: ") {
			t.Fatalf("it is %+v, %v", is, err)
		}
		if first == "" {
			first = is.Failure
		}
		if is.Failure != first {
			t.Fatalf("it says %q after %q", is.Failure, first)
		}
	}
}

// TestSize counts the memory of what clusters are ordered by, also after changes.
func TestSize(t *testing.T) {
	e := &Evaluator{Program: compiled(t, "true", "cluster.name", "1")}
	views := []*View{NewView(entry("a"), 0, nil), NewView(entry("bcd"), 1, nil)}
	one := 2 * int(unsafe.Sizeof(key{}))
	for _, want := range []int{2*one + 4, 2*one + 4} {
		if _, err := e.Run(t.Context(), views); err != nil || e.Size() != want {
			t.Errorf("it has %d bytes, want %d (%v)", e.Size(), want, err)
		}
	}
	views[1] = NewView(entry("cd"), 1, nil)
	if _, err := e.Run(t.Context(), views); err != nil || e.Size() != 2*one+3 {
		t.Errorf("after a change it has %d bytes, want %d (%v)", e.Size(), 2*one+3, err)
	}
}
