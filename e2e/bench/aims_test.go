package bench

import (
	"fmt"
	"slices"
	"strings"
)

// aim is what the project wants to reach in comparison with the custom resource, or with
// what else its text names.
type aim struct {
	text string
	// operations are those that it is for; none means all.
	operations []string
	// contestants have this in their names.
	contestants string
	// large is true when only the largest number of objects counts.
	large bool
	ratio func(ratios) float64
	met   func(ratio float64) bool
}

var (
	ofPerSecond     = func(r ratios) float64 { return r.perSecond }
	ofTime          = func(r ratios) float64 { return r.time }
	ofCeiling       = func(r ratios) float64 { return r.ceiling }
	ofAdministrator = func(r ratios) float64 { return r.administrator }
)

var aims = []aim{
	{"create through the aggregator: per second >= 0.85 x", []string{opCreate}, aggregator, false, ofPerSecond, atLeast(0.85)},
	{"patch through the aggregator: per second >= 0.8 x", []string{opPatch}, aggregator, false, ofPerSecond, atLeast(0.8)},
	{"get through the aggregator: per second >= 0.65 x", []string{opGet, opNewGet}, aggregator, false, ofPerSecond, atLeast(0.65)},
	{"watch through the aggregator: time <= 1.3 x", []string{opWatch}, aggregator, false, ofTime, atMost(1.3)},
	{"lists through the aggregator: time < 1 x", []string{opList, opLabel, opField}, aggregator, false, ofTime, atMost(0.99)},
	{"the same as the null backend: per second >= 0.75 x", nil, aggregated, false, ofCeiling, atLeast(0.75)},
	{"an ordinary user as an administrator: per second >= 0.9 x", nil, aggregated, false, ofAdministrator, atLeast(0.9)},
	{"create directly: per second >= 1.5 x", []string{opCreate}, direct, false, ofPerSecond, atLeast(1.5)},
	{"get directly: per second >= 1.5 x", []string{opGet, opNewGet}, direct, false, ofPerSecond, atLeast(1.5)},
	{"full list in protobuf: time <= 0.4 x", []string{opList}, inProtobuf.name, true, ofTime, atMost(0.4)},
	{"full list in protobuf: memory <= 0.4 x", []string{opList}, inProtobuf.name, true, func(r ratios) float64 { return r.memory }, atMost(0.4)},
	{"full list in protobuf: memory beyond idle <= 0.4 x", []string{opList}, inProtobuf.name, true, func(r ratios) float64 { return r.added }, atMost(0.4)},
	{"list by an index that matches 1 %: time <= 0.2 x", []string{opField}, "", false, ofTime, atMost(0.2)},
}

func atLeast(bound float64) func(float64) bool {
	return func(ratio float64) bool { return ratio >= bound }
}

func atMost(bound float64) func(float64) bool {
	return func(ratio float64) bool { return ratio <= bound }
}

// aims says which aims are met.
func (r *report) aims() string {
	var out strings.Builder
	out.WriteString("\nAims, in comparison with the CRD unless another is named:\n")
	for _, a := range aims {
		for _, m := range r.measured {
			r.judge(&out, a, m)
		}
	}
	r.judgeBudget(&out)
	return out.String()
}

// judge says of each contestant that an aim is for whether it is met in a measurement.
func (r *report) judge(out *strings.Builder, a aim, m measurement) {
	if a.operations != nil && !slices.Contains(a.operations, m.operation) || a.large && m.size != r.measured[len(r.measured)-1].size {
		return
	}
	for i, c := range r.contestants {
		if m.rows[i] == nil || c.way == custom || c.way == ceiling || !strings.Contains(c.name, a.contestants) {
			continue
		}
		if ratio := a.ratio(m.rows[i].ratio); ratio > 0 {
			fmt.Fprintf(out, "%s %.2f  %s (%s: %s, %d objects, %d at a time)\n", verdict(a.met(ratio)), ratio, a.text, c.name, m.operation, m.size, m.connections)
		}
	}
}

// allowance is what CPU the server and its etcd may take for a budget, in comparison with
// what kube-apiserver and etcd take for that of the custom resource.
const allowance = 0.65

func (r *report) judgeBudget(out *strings.Builder) {
	for _, m := range r.measured {
		if m.operation != opCreate {
			continue
		}
		for i, c := range r.contestants {
			of, base := r.spent(m, i), r.spent(m, c.base)
			if of == nil || base == nil || c.way != aggregator {
				continue
			}
			ratio := (of[registryServer] + of[store]).Seconds() / (base[hostServer] + base[store]).Seconds()
			fmt.Fprintf(out, "%s %.2f  CPU of server and etcd for %d creations and %d gets <= %.2f x that of kube-apiserver and etcd (%s, %d objects, %d at a time)\n",
				verdict(ratio <= allowance), ratio, spending, spending, allowance, c.name, m.size, m.connections)
		}
	}
}

func verdict(met bool) string {
	if met {
		return "met   "
	}
	return "missed"
}
