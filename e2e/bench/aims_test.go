package bench

import (
	"fmt"
	"strings"
)

// aim is what the project wants to reach in comparison with the custom resource.
type aim struct {
	text      string
	operation string
	// contestants have this in their names.
	contestants string
	// large is true when only the largest number of objects counts.
	large bool
	ratio func(ratios) float64
	met   func(ratio float64) bool
}

var aims = []aim{
	{"create through the aggregator: per second >= 1.0 x", opCreate, "aggregator", false, func(r ratios) float64 { return r.perSecond }, atLeast(1)},
	{"full list in protobuf: time <= 0.4 x", opList, "protobuf", true, func(r ratios) float64 { return r.time }, atMost(0.4)},
	{"full list in protobuf: memory <= 0.4 x", opList, "protobuf", true, func(r ratios) float64 { return r.memory }, atMost(0.4)},
	{"full list in protobuf: memory beyond idle <= 0.4 x", opList, "protobuf", true, func(r ratios) float64 { return r.added }, atMost(0.4)},
	{"list by an index that matches 1 %: time <= 0.2 x", opField, "", false, func(r ratios) float64 { return r.time }, atMost(0.2)},
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
	out.WriteString("\nAims, in comparison with the CRD:\n")
	largest := r.measured[len(r.measured)-1].size
	for _, a := range aims {
		for _, m := range r.measured {
			if m.operation != a.operation || a.large && m.size != largest {
				continue
			}
			for i, c := range r.contestants[1:] {
				if !strings.Contains(c.name, a.contestants) {
					continue
				}
				ratio, verdict := a.ratio(m.rows[i+1].ratio), "missed"
				if a.met(ratio) {
					verdict = "met"
				}
				fmt.Fprintf(&out, "%-7s %.2f  %s (%s, %d objects)\n", verdict, ratio, a.text, c.name, m.size)
			}
		}
	}
	return out.String()
}
