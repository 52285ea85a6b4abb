package bench

import (
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
)

// header says what the tables are about.
func (r *report) header(s settings) string {
	var out strings.Builder
	fsync, shape := "without fsync", "one server, one etcd member"
	if s.fsync {
		fsync = "with fsync"
	}
	if s.available {
		shape = "two servers, three etcd members"
	}
	fmt.Fprintf(&out, "\n%d CPUs; Kubernetes %s and etcd %s for all, etcd %s; behind the aggregator %s; %d rounds of %s.\n",
		runtime.NumCPU(), hostVersion, framework.HostEtcdVersion, fsync, shape, s.rounds, s.window)
	out.WriteString("Answers are read but not decoded. CPU and allocations are per request, memory is the peak of RSS; CPU is that of kube-apiserver,\n" +
		"server and etcd, as far as they take part, the others are without etcd. + is the memory beyond that of the idle processes.\n" +
		"x compares with the CRD's turn in the same round, an administrator's with an administrator's, ceiling with the null backend's.\nIdle:")
	for _, c := range r.contestants {
		if c.encoding.name == inJSON.name && !c.administrator {
			fmt.Fprintf(&out, " %s %s MB;", c.way, join(c.idle()))
		}
	}
	return out.String() + "\n"
}

// table writes a measurement as a table.
func (r *report) table(m measurement) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n%d objects, %s, %d at a time\tp50 ms\tp99 ms\tper s\tCPU ms\tby process\talloc kB\tmemory MB\t| x per s\tx time\tx CPU\tx alloc\tx memory\tx +\tceiling\t\n", m.size, m.operation, m.connections)
	for i, row := range m.rows {
		if row == nil {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.4g\t%s\t%s\t%s\t%s\t", r.contestants[i].name, milliseconds(row.p50), milliseconds(row.p99), row.perSecond, milliseconds(row.cpu), row.parts(),
			known(row.allocated/1000, "%.4g"), join(row.peaks))
		x := row.ratio
		fmt.Fprintf(table, "| %.2f\t%.2f\t%.2f\t%s\t%.2f\t%.2f\t%s\t\n", x.perSecond, x.time, x.cpu, known(x.allocated, "%.2f"), x.memory, x.added, known(x.ceiling, "%.2f"))
	}
	_ = table.Flush()
	return out.String()
}

// parts writes the CPU of a request by process.
func (r *row) parts() string {
	var parts []string
	for _, name := range processes {
		if cpu, ok := r.byProcess[name]; ok {
			parts = append(parts, fmt.Sprintf("%.2f", cpu.Seconds()*1000))
		}
	}
	return strings.Join(parts, "+")
}

// budget writes what CPU many requests take, by process: creations and gets of what was
// created, as many of each.
func (r *report) budget() string {
	var out strings.Builder
	for _, m := range r.measured {
		if m.operation != opCreate {
			continue
		}
		for i, c := range r.contestants {
			of := r.spent(m, i)
			if of == nil {
				continue
			}
			fmt.Fprintf(&out, "%s, %d objects, %d at a time: ", c.name, m.size, m.connections)
			for _, name := range processes {
				if cpu, ok := of[name]; ok {
					fmt.Fprintf(&out, "%s %.1f s  ", name, cpu.Seconds())
				}
			}
			out.WriteString("\n")
		}
	}
	return fmt.Sprintf("\nCPU of %d creations and %d gets of new names:\n%s", spending, spending, out.String())
}

// spending is how many creations, and how many gets, a budget is for.
const spending = 3000

// spent returns what CPU the requests of a budget take, by process; nil when a contestant
// has not made both.
func (r *report) spent(creations measurement, contestant int) map[string]time.Duration {
	for _, m := range r.measured {
		if m.operation != opNewGet || m.size != creations.size || m.connections != creations.connections || m.rows[contestant] == nil || creations.rows[contestant] == nil {
			continue
		}
		out := map[string]time.Duration{}
		for _, row := range []*row{m.rows[contestant], creations.rows[contestant]} {
			for name, cpu := range row.byProcess {
				out[name] += spending * cpu
			}
		}
		return out
	}
	return nil
}

func (c *contestant) idle() []float64 {
	var sizes []float64
	for _, server := range c.servers {
		sizes = append(sizes, server.idle)
	}
	return sizes
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.4g", d.Seconds()*1000) }

// known writes a figure that may be missing.
func known(figure float64, format string) string {
	if figure == 0 {
		return "-"
	}
	return fmt.Sprintf(format, figure)
}

// join writes sizes in megabytes.
func join(sizes []float64) string {
	var parts []string
	for _, size := range sizes {
		parts = append(parts, fmt.Sprintf("%.0f", size/megabyte))
	}
	return strings.Join(parts, "+")
}
