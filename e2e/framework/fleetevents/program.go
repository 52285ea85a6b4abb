package fleetevents

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// Program is the running example, and what it has said until the last restore.
type Program struct {
	example *framework.Example
	// before is how many events were said until then, and state the clusters at that time.
	before int
	state  map[string]Event
}

// Start starts the example, which "make examples" builds, with a kubeconfig that it follows.
func Start(t *testing.T, kubeconfig string) *Program {
	t.Helper()
	return &Program{example: framework.StartExample(t, "fleet-events", "--kubeconfig="+kubeconfig), state: map[string]Event{}}
}

// events returns those since the last restore.
func (p *Program) events() []Event { return parse(p.example.Lines())[p.before:] }

// Await waits until what the program has said amounts to what the registry lists, which it
// returns. Nothing may be written meanwhile. The test fails when an event was doubled.
func (p *Program) Await(t *testing.T, clusters typed.ClusterInterface) []v1beta1.Cluster {
	t.Helper()
	var list *v1beta1.ClusterList
	framework.Eventually(t, "the program to have said what the registry has", func(ctx context.Context) (err error) {
		if list, err = clusters.List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		state, _ := replay(p.state, p.events())
		return compare(state, list.Items)
	})
	_, problems := replay(p.state, p.events())
	report(t, problems)
	return list.Items
}

// Check compares what the program has said with the lives of clusters that were written.
func (p *Program) Check(t *testing.T, lives []Life) {
	t.Helper()
	events := p.events()
	problems, merged := missed(events, lives)
	report(t, problems)
	writes := 0
	for _, life := range lives {
		writes += len(life.Versions)
	}
	if writes == 0 {
		t.Error("nothing was written")
	}
	t.Logf("%d clusters were written %d times: the program has said %d events, and left out %d versions that others followed", len(lives), writes, len(events), merged)
}

// Restoring begins what the program says of a restore: nothing may be written from before
// that on until it is checked.
func (p *Program) Restoring(t *testing.T) {
	t.Helper()
	events := p.events()
	state, problems := replay(p.state, events)
	report(t, problems)
	p.before, p.state = p.before+len(events), state
}

// CheckRestored waits until the program has said what a restored registry has, and compares
// what it has said with the difference to what there was before.
func (p *Program) CheckRestored(t *testing.T, before []v1beta1.Cluster, clusters typed.ClusterInterface) {
	t.Helper()
	// A version that was said long ago is news again: so the state alone counts.
	after := p.Await(t, clusters)
	want, got := difference(before, after), []string{}
	for _, event := range p.events() {
		got = append(got, event.String())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("of the restore the program has said\n%v\nwant\n%v", got, want)
	}
	kinds := map[string]int{}
	for _, event := range p.events() {
		kinds[event.Kind]++
	}
	if kinds[added] == 0 || kinds[changed] == 0 || kinds[removed] == 0 {
		t.Errorf("the restore has not all kinds of events, so that little was tried: %v", kinds)
	}
	t.Logf("of the restore of %d clusters the program has said %v", len(after), kinds)
}

// report fails the test with the first problems.
func report(t *testing.T, problems []string) {
	t.Helper()
	const shown = 10
	for _, problem := range problems[:min(shown, len(problems))] {
		t.Error(problem)
	}
	if len(problems) > shown {
		t.Errorf("and %d more", len(problems)-shown)
	}
}
