package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
)

// report collects what was measured.
type report struct {
	contestants []*contestant
	measured    []measurement
}

// measurement is one operation at one size, with a row for each contestant.
type measurement struct {
	size      int
	operation string
	rows      []row
}

// row is a contestant's figures: medians of its turns, but for the
// percentiles, which are of all its requests. Ratios are medians too, of each
// turn and the custom resource's turn of the same round.
type row struct {
	p50, p99  time.Duration
	perSecond float64
	cpu       time.Duration // per request
	allocated float64       // bytes per request
	peaks     []float64     // bytes, of each server
	ratio     ratios
}

// ratios compare with the custom resource.
type ratios struct{ perSecond, time, memory, added, allocated, cpu float64 }

// add takes the turns of each contestant, and returns them as a table.
func (r *report) add(size int, operation string, turns [][]sample) string {
	m := measurement{size: size, operation: operation}
	for i, samples := range turns {
		m.rows = append(m.rows, r.row(r.contestants[i], samples, turns[0]))
	}
	r.measured = append(r.measured, m)
	return r.table(m)
}

func (r *report) row(c *contestant, samples, base []sample) row {
	var latencies []time.Duration
	for _, s := range samples {
		latencies = append(latencies, s.latencies...)
	}
	over := func(figure func(*contestant, sample) float64) float64 {
		var all []float64
		for i, s := range samples {
			all = append(all, figure(c, s)/figure(r.contestants[0], base[i]))
		}
		return quantile(all, 0.5)
	}
	out := row{
		p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99),
		perSecond: median(c, samples, perSecond),
		cpu:       time.Duration(median(c, samples, cpu)),
		allocated: median(c, samples, allocated),
		ratio:     ratios{over(perSecond), over(typical), over(peak), over(added), over(allocated), over(cpu)},
	}
	for i := range c.servers {
		out.peaks = append(out.peaks, median(c, samples, func(_ *contestant, s sample) float64 { return s.costs[i].peak }))
	}
	return out
}

// The figures of a turn.

func perSecond(_ *contestant, s sample) float64 {
	return float64(len(s.latencies)) / s.elapsed.Seconds()
}

func typical(_ *contestant, s sample) float64 { return float64(quantile(s.latencies, 0.5)) }

func cpu(_ *contestant, s sample) float64 {
	return sum(s, func(_ int, c cost) float64 { return float64(c.cpu) }) / float64(len(s.latencies))
}

func allocated(_ *contestant, s sample) float64 {
	return sum(s, func(_ int, c cost) float64 { return c.allocated }) / float64(len(s.latencies))
}

func peak(_ *contestant, s sample) float64 {
	return sum(s, func(_ int, c cost) float64 { return c.peak })
}

// added is the memory beyond what the servers need without objects.
func added(c *contestant, s sample) float64 {
	return sum(s, func(i int, used cost) float64 { return used.peak - c.servers[i].idle })
}

func sum(s sample, figure func(server int, c cost) float64) float64 {
	total := 0.0
	for i, c := range s.costs {
		total += figure(i, c)
	}
	return total
}

func median(c *contestant, samples []sample, figure func(*contestant, sample) float64) float64 {
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

// header says what the tables are about.
func (r *report) header(s settings) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%d CPUs; Kubernetes %s and etcd %s for all, etcd without fsync; %d rounds of %s, %d connections.\n",
		runtime.NumCPU(), hostVersion, framework.HostEtcdVersion, s.rounds, s.window, connections)
	out.WriteString("Answers are read but not decoded. Memory is the peak of RSS, CPU and allocations are per request, of the processes that serve\n" +
		"(aggregator: kube-apiserver + registry); + is the memory beyond that of the idle processes. x compares with the CRD's turn in the same round.\nIdle:")
	for _, c := range r.contestants {
		if c.encoding.name == inJSON.name {
			fmt.Fprintf(&out, " %s %s MB;", strings.TrimSuffix(c.name, " "+inJSON.name), join(c.idle()))
		}
	}
	return out.String() + "\n"
}

// table writes a measurement as a table.
func (r *report) table(m measurement) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n%d objects, %s\tp50 ms\tp99 ms\tper s\tCPU ms\talloc kB\tmemory MB\t| x per s\tx time\tx CPU\tx alloc\tx memory\tx +\t\n", m.size, m.operation)
	for i, row := range m.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.4g\t%s\t%.4g\t%s\t", r.contestants[i].name, milliseconds(row.p50), milliseconds(row.p99), row.perSecond, milliseconds(row.cpu), row.allocated/1000, join(row.peaks))
		x := row.ratio
		fmt.Fprintf(table, "| %.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", x.perSecond, x.time, x.cpu, x.allocated, x.memory, x.added)
	}
	_ = table.Flush()
	return out.String()
}

func (c *contestant) idle() []float64 {
	var sizes []float64
	for _, server := range c.servers {
		sizes = append(sizes, server.idle)
	}
	return sizes
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.4g", d.Seconds()*1000) }

// join writes sizes in megabytes.
func join(sizes []float64) string {
	var parts []string
	for _, size := range sizes {
		parts = append(parts, fmt.Sprintf("%.0f", size/megabyte))
	}
	return strings.Join(parts, "+")
}
