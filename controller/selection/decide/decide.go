package decide

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// many is how many decisions never go at once for want of their clusters if they are more than
// half.
const many = 3

// Input is what a decision follows from.
type Input struct {
	Spec operatorv1alpha1.ClusterSelectionSpec
	// Candidates are the clusters that match, of those that the namespace may see.
	Candidates []Candidate
	// Visible returns the cluster of a name if the namespace may see it, nil otherwise.
	// Registered reports whether the registry has one of a name, visible or not.
	Visible    func(name string) *View
	Registered func(name string) bool
	// Previous are the decisions so far, and Changed is when they last changed.
	Previous []operatorv1alpha1.ClusterDecision
	Changed  time.Time
	// Edited says that the spec is another than that of the previous decisions.
	Edited bool
	Now    time.Time
}

// Decision is what was decided.
type Decision struct {
	Clusters []operatorv1alpha1.ClusterDecision
	// Missing counts the clusters that are still selected because more than half are missing
	// from the registry.
	Missing int
	// Next is when the decision changes although nothing else does; zero for never.
	Next time.Time
}

// Decide decides which clusters are selected:
//  1. a selected cluster that is among those to select stays;
//  2. one that is not stays until that has been so for as long as the spec says. One that can't
//     be seen, or is tainted NoExecute, goes at once; so does one that is missing from the
//     registry, unless more than half are, as when a registry was emptied or restored;
//  3. free places are filled at once, in order;
//  4. the order is that of the spec when clusters come or go, or it is old enough.
func (p *Program) Decide(in Input) Decision {
	window := time.Duration(0)
	if in.Spec.StabilizationSeconds != nil && !in.Edited {
		window = time.Duration(*in.Spec.StabilizationSeconds) * time.Second
	}
	d := &deciding{Input: in, window: window, position: map[string]int{}, taken: map[string]bool{}}
	ranked := p.ranked(d.eligible(), func(c Candidate) bool { return repels(c.Taints, in.Spec.Tolerations) == preferNot })
	for i, candidate := range ranked {
		d.position[candidate.Name] = i
	}
	d.keep()
	for _, candidate := range ranked[:min(len(ranked), d.limit())] {
		if len(d.Clusters) >= d.limit() {
			break
		}
		if !d.taken[candidate.Name] {
			d.Clusters = append(d.Clusters, operatorv1alpha1.ClusterDecision{ClusterName: candidate.Name, Reason: operatorv1alpha1.DecisionMatching})
		}
	}
	d.arrange()
	return d.Decision
}

// Retain returns decisions without those of clusters that the namespace may no longer see:
// what is left of them while no others can be made.
func Retain(in Input) []operatorv1alpha1.ClusterDecision {
	return slices.DeleteFunc(slices.Clone(in.Previous), func(d operatorv1alpha1.ClusterDecision) bool {
		return in.Visible(d.ClusterName) == nil && in.Registered(d.ClusterName)
	})
}

// deciding is a decision that is being made.
type deciding struct {
	Input
	Decision
	window   time.Duration
	position map[string]int
	taken    map[string]bool
}

func (d *deciding) limit() int { return int(d.Spec.Limit) }

// eligible returns the candidates that taints don't keep away: a taint without eviction is for
// those that are not selected yet.
func (d *deciding) eligible() []Candidate {
	selected := map[string]bool{}
	for _, is := range d.Previous {
		selected[is.ClusterName] = true
	}
	return slices.DeleteFunc(slices.Clone(d.Candidates), func(c Candidate) bool {
		r := repels(c.Taints, d.Spec.Tolerations)
		return r == evict || r == noNew && !selected[c.Name]
	})
}

// keep keeps the previous decisions that are not to go yet.
func (d *deciding) keep() {
	if absent := d.absent(); !d.Edited && absent >= many && 2*absent > len(d.Previous) {
		d.Missing = absent
	}
	for _, is := range d.Previous {
		view := d.Visible(is.ClusterName)
		switch {
		case view != nil && repels(view.Taints, d.Spec.Tolerations) != evict:
			d.stay(is)
		case view == nil && d.Missing > 0 && !d.Registered(is.ClusterName):
			if is.Since == nil {
				is.Since = &metav1.Time{Time: d.Now}
			}
			d.take(is, operatorv1alpha1.DecisionMissing)
		}
	}
}

// absent counts the previous decisions whose clusters the registry does not have.
func (d *deciding) absent() int {
	n := 0
	for _, is := range d.Previous {
		if d.Visible(is.ClusterName) == nil && !d.Registered(is.ClusterName) {
			n++
		}
	}
	return n
}

// stay keeps a decision whose cluster may be selected still, unless it was not to be for as
// long as it may stay.
func (d *deciding) stay(is operatorv1alpha1.ClusterDecision) {
	position, matches := d.position[is.ClusterName]
	if matches && position < d.limit() {
		is.Since = nil
		d.take(is, operatorv1alpha1.DecisionMatching)
		return
	}
	reason := operatorv1alpha1.DecisionNotMatching
	if matches {
		reason = operatorv1alpha1.DecisionOutranked
	}
	since := d.Now
	if is.Since != nil && is.Since.Time.Before(d.Now) {
		since = is.Since.Time
	}
	if ends := since.Add(d.window); ends.After(d.Now) {
		d.wake(ends)
		is.Since = &metav1.Time{Time: since}
		d.take(is, reason)
	}
}

func (d *deciding) take(is operatorv1alpha1.ClusterDecision, reason operatorv1alpha1.DecisionReason) {
	is.Reason = reason
	d.taken[is.ClusterName] = true
	d.Clusters = append(d.Clusters, is)
}

func (d *deciding) wake(at time.Time) {
	if d.Next.IsZero() || at.Before(d.Next) {
		d.Next = at
	}
}

// arrange puts the clusters in order, those that have no place in it last.
func (d *deciding) arrange() {
	sorted := slices.Clone(d.Clusters)
	place := func(is operatorv1alpha1.ClusterDecision) int {
		if position, ok := d.position[is.ClusterName]; ok {
			return position
		}
		return len(d.position)
	}
	slices.SortFunc(sorted, func(a, b operatorv1alpha1.ClusterDecision) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.ClusterName, b.ClusterName))
	})
	// What was kept is in the previous order: nothing has come or gone if that is all.
	if ends := d.Changed.Add(d.window); SameClusters(d.Clusters, d.Previous) && !SameClusters(sorted, d.Previous) && ends.After(d.Now) {
		d.wake(ends)
		return
	}
	d.Clusters = sorted
}

// SameClusters reports whether two decisions have the same clusters in the same order.
func SameClusters(a, b []operatorv1alpha1.ClusterDecision) bool {
	return slices.EqualFunc(a, b, func(x, y operatorv1alpha1.ClusterDecision) bool { return x.ClusterName == y.ClusterName })
}
