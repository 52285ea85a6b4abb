package decide

import (
	"cmp"
	"context"
	"errors"
	"slices"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Budget is what the evaluation of all clusters for one selection may cost: as much as
// kube-apiserver spends on all expressions of one object.
const Budget = celconfig.RuntimeCELCostBudget

// ErrBudget says that the expressions of a selection cost too much for all clusters.
var ErrBudget = errors.New("the expressions cost too much")

// Evaluator evaluates a program for clusters, and only for those that have changed since it
// last did.
type Evaluator struct {
	*Program
	known []known
	// size is how many bytes the keys of known have, and example and failure are those of the
	// last run: CEL reads maps in no order, and would say something else each time.
	size    int
	example *View
	failure string
}

// Size is how many bytes of memory the evaluator keeps by which clusters are ordered.
func (e *Evaluator) Size() int { return e.size }

// known is what an evaluator knows of the cluster of a slot.
type known struct {
	view *View
	said *evaluation
	cost uint64
}

// Candidate is a cluster that matches.
type Candidate struct {
	*View
	keys []key
}

// Evaluated is what an evaluator says of clusters.
type Evaluated struct {
	// Candidates are the clusters that match, in no order.
	Candidates []Candidate
	// Failing counts those for which an expression has no value. Of the first by name, Example
	// is that name, and Failure says why.
	Failing          int
	Example, Failure string
	// Cost is what all of them cost, whether they were evaluated now or before.
	Cost uint64
}

// Run evaluates clusters. The error is ErrBudget, or that of ctx.
func (e *Evaluator) Run(ctx context.Context, views []*View) (Evaluated, error) {
	out := Evaluated{}
	var example *View
	for _, view := range views {
		is, err := e.of(ctx, view)
		if err != nil {
			return Evaluated{}, err
		}
		if out.Cost += is.cost; out.Cost > Budget {
			return Evaluated{}, ErrBudget
		}
		if is.said.matches {
			out.Candidates = append(out.Candidates, Candidate{View: view, keys: is.said.keys})
		}
		if is.said.failed {
			out.Failing++
			if example == nil || view.Name < example.Name {
				example = view
			}
		}
	}
	if example != e.example {
		e.example, e.failure = example, ""
		if example != nil {
			if _, _, err := e.evaluate(ctx, example); err != nil {
				e.failure = oneLine(err.Error())
			}
		}
	}
	if ctx.Err() != nil {
		e.example = nil
		return Evaluated{}, ctx.Err()
	}
	if example != nil {
		out.Example, out.Failure = example.Name, e.failure
	}
	return out, nil
}

// of returns what is known of a cluster, after it was evaluated if need be.
func (e *Evaluator) of(ctx context.Context, view *View) (known, error) {
	if view.slot >= len(e.known) {
		e.known = append(e.known, make([]known, view.slot+1-len(e.known))...)
	}
	if is := e.known[view.slot]; is.view == view {
		return is, nil
	}
	said, cost, _ := e.evaluate(ctx, view)
	if ctx.Err() != nil {
		return known{}, ctx.Err()
	}
	e.size += said.size() - e.known[view.slot].said.size()
	e.known[view.slot] = known{view: view, said: said, cost: cost}
	return e.known[view.slot], nil
}

// compare orders two clusters by their keys, then by their names.
func (p *Program) compare(a, b Candidate) int {
	for i, by := range p.order {
		x, y := a.keys[i], b.keys[i]
		if x.kind == missing || y.kind == missing {
			if c := cmp.Compare(x.kind, y.kind); c != 0 {
				return c
			}
			continue
		}
		if c := x.compare(y); c != 0 && by.descending {
			return -c
		} else if c != 0 {
			return c
		}
	}
	return cmp.Compare(a.Name, b.Name)
}

// compare orders two keys.
func (k key) compare(other key) int {
	if c := cmp.Compare(k.kind, other.kind); c != 0 {
		return c
	}
	if k.kind == text {
		return cmp.Compare(k.text, other.text)
	}
	return cmp.Compare(k.number, other.number)
}

// ranked puts candidates in order, those that are to come late after all others.
func (p *Program) ranked(candidates []Candidate, late func(Candidate) bool) []Candidate {
	first := make([]Candidate, 0, len(candidates))
	var last []Candidate
	for _, c := range candidates {
		if late(c) {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
	}
	slices.SortFunc(first, p.compare)
	slices.SortFunc(last, p.compare)
	return append(first, last...)
}
