package framework

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// Report is what became of a load.
type Report struct {
	// Lives are the clusters that it wrote.
	Lives []*Life
	// named begins the names of these, where those of another load may be there.
	named string
	// Sent counts the requests, and Failed tells of those that were not
	// answered as they should have been, and of watches that could not be begun.
	Sent   int
	Failed []string
	// Rate is how many requests were sent in a second, and Slowest how long the
	// longest took.
	Rate    float64
	Slowest time.Duration
	// Conflicts counts the replacements that were done again, since others had
	// stored the cluster anew.
	Conflicts int
	// Held is the longest time in which nothing was sent, since too many requests had no answer.
	Held time.Duration
	// Phases are what Mark has divided the load into.
	Phases []Phase
	// Watches are the clients that watched.
	Watches []Watched
}

// Phase is a part of a load's time.
type Phase struct {
	Name string
	// Requests counts those sent in it, and Failed is about them and the watches.
	Requests, Failed int
	// Rate is how many requests were sent in a second.
	Rate float64
	// P50, P99 and Slowest are how long requests took until they were answered,
	// well or not.
	P50, P99, Slowest time.Duration
	// Outage is the time from when the first request was sent that failed until the
	// last of those had its answer.
	Outage time.Duration
	// Examples are some of the failures.
	Examples []string
}

// String returns the phase in one line.
func (p Phase) String() string {
	ms := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("%s: %d requests at %.1f/s, %d failed, p50 %s, p99 %s, the slowest took %s", p.Name, p.Requests, p.Rate, p.Failed, ms(p.P50), ms(p.P99), ms(p.Slowest))
}

// Watched is what one client that watched was told.
type Watched struct {
	// Events counts what it was told, Resumed how often it had to go on with another
	// watch, and Listed how often it was too slow for that, and read a list.
	Events, Resumed, Listed int
	// Problems are what it missed, or was told more than once or in a wrong order.
	Problems []string
}

// What clients take for an outage, though each request is answered at last. The bounds leave
// room for a computer that is busy, on which an election of etcd alone may take some seconds.
const (
	heldLimit    = 15 * time.Second
	slowestLimit = 30 * time.Second
	p99Limit     = 10 * time.Second
	// listedLimit is how often a watch may be so slow that it has to list again.
	listedLimit = 3
)

// Stalled returns why clients were kept waiting, or nil.
func (r Report) Stalled() error {
	var errs []error
	if r.Held > heldLimit {
		errs = append(errs, fmt.Errorf("for %s nothing was sent, since too many requests had no answer: at most %s are allowed", r.Held, heldLimit))
	}
	for _, p := range r.Phases {
		errs = append(errs, p.Stalled())
	}
	for i, w := range r.Watches {
		if w.Listed > listedLimit {
			errs = append(errs, fmt.Errorf("watch %d was too slow %d times, of %d that are allowed", i, w.Listed, listedLimit))
		}
	}
	return errors.Join(errs...)
}

// Stalled returns why clients were kept waiting in the phase, or nil.
func (p Phase) Stalled() error {
	if p.Slowest > slowestLimit || p.P99 > p99Limit {
		return fmt.Errorf("requests stalled: at most %s are allowed for each, and %s for 99 %%: %s", slowestLimit, p99Limit, p)
	}
	return nil
}

// String returns the report in one line, and one more for each phase where there
// are several, and for each watch.
func (r Report) String() string {
	writes := 0
	for _, l := range r.Lives {
		writes += l.Writes
	}
	lines := []string{fmt.Sprintf("%d requests at %.1f/s, %d acknowledged writes to %d clusters, %d failed, the slowest took %s",
		r.Sent, r.Rate, writes, len(r.Lives), len(r.Failed), r.Slowest.Round(time.Millisecond))}
	if r.Held > 0 {
		lines = append(lines, fmt.Sprintf("held for %s by requests without an answer", r.Held.Round(time.Millisecond)))
	}
	if r.Conflicts > 0 {
		lines = append(lines, fmt.Sprintf("%d replacements were done again after others had stored the cluster anew", r.Conflicts))
	}
	if len(r.Phases) > 1 {
		for _, phase := range r.Phases {
			lines = append(lines, phase.String())
		}
	}
	for i, w := range r.Watches {
		lines = append(lines, fmt.Sprintf("watch %d was told of %d changes, resumed %d times, listed again %d times, and has %d problems", i, w.Events, w.Resumed, w.Listed, len(w.Problems)))
	}
	return strings.Join(lines, "\n")
}

// report is called when all has ended.
func (l *Load) report() Report {
	r := Report{Lives: l.lives, named: l.name, Sent: l.sent, Failed: l.failed, Held: l.held, Conflicts: l.conflicts}
	for _, p := range l.phases {
		r.Phases = append(r.Phases, p.report())
		r.Slowest = max(r.Slowest, r.Phases[len(r.Phases)-1].Slowest)
	}
	r.Rate = float64(l.sent) / l.phases[len(l.phases)-1].to.Sub(l.start).Seconds()
	for _, w := range l.watches {
		r.Watches = append(r.Watches, Watched{Events: len(w.told), Resumed: w.resumed, Listed: len(w.gaps), Problems: checkTold(w.told, w.gaps, l.lives, l.rewritten)})
	}
	return r
}

// phase is a phase of a load that runs.
type phase struct {
	name     string
	from, to time.Time
	took     []time.Duration
	failed   int
	// failing is from the first request that failed to the last one's answer.
	failing struct{ from, to time.Time }
	// examples are the first and the last failures.
	examples []string
}

// maxExamples is how many failures of a phase are shown.
const maxExamples = 6

// fail notes a failure of a request that was sent at the given time.
func (p *phase) fail(sent time.Time, what string) {
	p.failed++
	if p.failing.from.IsZero() || sent.Before(p.failing.from) {
		p.failing.from = sent
	}
	p.failing.to = time.Now()
	if len(p.examples) == maxExamples {
		p.examples = slices.Delete(p.examples, maxExamples/2, maxExamples/2+1)
	}
	p.examples = append(p.examples, what)
}

func (p *phase) report() Phase {
	out := Phase{Name: p.name, Requests: len(p.took), Failed: p.failed, Outage: p.failing.to.Sub(p.failing.from), Examples: slices.Clone(p.examples)}
	if seconds := p.to.Sub(p.from).Seconds(); seconds > 0 {
		out.Rate = float64(len(p.took)) / seconds
	}
	if len(p.took) == 0 {
		return out
	}
	sorted := slices.Sorted(slices.Values(p.took))
	out.P50, out.P99, out.Slowest = percentile(sorted, 50), percentile(sorted, 99), sorted[len(sorted)-1]
	return out
}

// percentile returns what a percentage of sorted durations, at least one, do not
// exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Compare returns how what is stored, and what watches told, differ from what
// was acknowledged, or nil.
func (r Report) Compare(stored []v1alpha1.Cluster) error {
	left := map[string]*v1alpha1.Cluster{}
	for i := range stored {
		left[stored[i].Name] = &stored[i]
	}
	var errs []error
	for _, life := range r.Lives {
		got, ok := left[life.Name]
		delete(left, life.Name)
		switch {
		case life.InDoubt:
			errs = append(errs, life.survived(got))
		case !ok && life.Acknowledged != nil:
			errs = append(errs, fmt.Errorf("the acknowledged cluster %s is lost", life.Name))
		case ok && life.Acknowledged == nil:
			errs = append(errs, fmt.Errorf("the deleted cluster %s is back", life.Name))
		case ok:
			errs = append(errs, Same(life.Acknowledged, got))
		}
	}
	for name := range left {
		if strings.HasPrefix(name, r.named) {
			errs = append(errs, fmt.Errorf("nobody wrote the cluster %s", name))
		}
	}
	for i, w := range r.Watches {
		for _, problem := range w.Problems {
			errs = append(errs, fmt.Errorf("watch %d: %s", i, problem))
		}
	}
	return errors.Join(errs...)
}
