package bench

import (
	"slices"
	"time"
)

// report collects what was measured.
type report struct {
	contestants []*contestant
	measured    []measurement
}

// measurement is one operation at one size and number of connections, with a row for each
// contestant; nil for one that took no part.
type measurement struct {
	size, connections int
	operation         string
	rows              []*row
}

// row is a contestant's figures: medians of its turns, but for the percentiles, which are
// of all its requests, and CPU by process, which is of all its turns. Ratios are medians
// too, of each turn and another contestant's turn of the same round.
type row struct {
	p50, p99  time.Duration
	perSecond float64
	cpu       time.Duration            // per request
	byProcess map[string]time.Duration // CPU per request, by the names of processes
	allocated float64                  // bytes per request
	peaks     []float64                // bytes, of each server
	ratio     ratios
}

// ratios compare with the custom resource; two of them are of requests per second in
// comparison with the null backend and with an administrator's. They are 0 where there is
// nothing to compare with.
type ratios struct{ perSecond, time, memory, added, allocated, cpu, ceiling, administrator float64 }

// add takes the turns of each contestant, and returns them as a table.
func (r *report) add(size, connections int, operation string, turns [][]sample) string {
	m := measurement{size: size, connections: connections, operation: operation}
	for i, samples := range turns {
		if len(samples) == 0 {
			m.rows = append(m.rows, nil)
			continue
		}
		m.rows = append(m.rows, r.row(i, turns))
	}
	r.measured = append(r.measured, m)
	return r.table(m)
}

// index returns the place of a contestant, -1 when there is none of the name.
func (r *report) index(name string) int {
	return slices.IndexFunc(r.contestants, func(c *contestant) bool { return c.name == name })
}

func (r *report) row(index int, turns [][]sample) *row {
	c, samples := r.contestants[index], turns[index]
	var latencies []time.Duration
	for _, s := range samples {
		latencies = append(latencies, s.latencies...)
	}
	against := func(other int, figure figure) float64 {
		if other < 0 || len(turns[other]) == 0 {
			return 0
		}
		var all []float64
		for i, s := range samples {
			all = append(all, figure(c, s)/figure(r.contestants[other], turns[other][i]))
		}
		return quantile(all, 0.5)
	}
	over := func(figure figure) float64 { return against(c.base, figure) }
	out := &row{
		p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99),
		perSecond: median(c, samples, perSecond),
		cpu:       time.Duration(median(c, samples, cpu)),
		byProcess: map[string]time.Duration{},
		allocated: median(c, samples, allocated),
		ratio: ratios{over(perSecond), over(typical), over(peak), over(added), over(allocated), over(cpu),
			against(r.index(ceiling+" "+inJSON.name), perSecond), against(r.index(c.name+administrator), perSecond)},
	}
	for i, p := range c.processes() {
		for _, s := range samples {
			out.byProcess[p.name] += s.costs[i].cpu / time.Duration(len(latencies))
		}
	}
	for i := range c.servers {
		out.peaks = append(out.peaks, median(c, samples, func(_ *contestant, s sample) float64 { return s.costs[i].peak }))
	}
	return out
}

// figure is one of a turn's figures.
type figure func(*contestant, sample) float64

func perSecond(_ *contestant, s sample) float64 {
	return float64(len(s.latencies)) / s.elapsed.Seconds()
}

func typical(_ *contestant, s sample) float64 { return float64(quantile(s.latencies, 0.5)) }

func cpu(_ *contestant, s sample) float64 {
	return sum(s.costs, func(_ int, c cost) float64 { return float64(c.cpu) }) / float64(len(s.latencies))
}

// Memory and allocations are those of the servers, which come first, without their etcd.

func allocated(c *contestant, s sample) float64 {
	return sum(s.costs[:len(c.servers)], func(_ int, c cost) float64 { return c.allocated }) / float64(len(s.latencies))
}

func peak(c *contestant, s sample) float64 {
	return sum(s.costs[:len(c.servers)], func(_ int, c cost) float64 { return c.peak })
}

// added is the memory beyond what the servers need without objects.
func added(c *contestant, s sample) float64 {
	return sum(s.costs[:len(c.servers)], func(i int, used cost) float64 { return used.peak - c.servers[i].idle })
}

func sum(costs []cost, figure func(process int, c cost) float64) float64 {
	total := 0.0
	for i, c := range costs {
		total += figure(i, c)
	}
	return total
}

func median(c *contestant, samples []sample, figure figure) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, figure(c, s))
	}
	return quantile(all, 0.5)
}

func quantile[T float64 | time.Duration](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
