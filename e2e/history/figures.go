package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Figures are what clients felt.
type Figures struct {
	// Requests counts what was sent, and Writes the acknowledged writes.
	Requests, Writes int
	// Failures are the requests that got no answer, and the watches that were refused.
	Failures []Failure
	// Stall is the longest time in which no write was acknowledged, and Slowest the longest
	// that a request took which was answered.
	Stall, Slowest time.Duration
	// Took is how long clients were at work, and Held for how long of that all of them waited
	// for answers.
	Took, Held time.Duration
}

// figures returns what clients felt so far.
func (r *Recorder) figures() Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := Figures{Requests: len(r.operations), Writes: r.acknowledged, Failures: slices.Clone(r.failures), Took: r.since(), Held: r.held}
	var acknowledged []time.Duration
	for _, o := range r.operations {
		if o.Result == Unanswered {
			continue
		}
		f.Slowest = max(f.Slowest, o.Return-o.Call)
		if o.writes() && o.Result == Done {
			acknowledged = append(acknowledged, o.Return)
		}
	}
	f.Stall = stall(append(acknowledged, f.Took))
	return f
}

// stall is the longest time between two answers that follow each other.
func stall(answers []time.Duration) (longest time.Duration) {
	slices.Sort(answers)
	for i := 1; i < len(answers); i++ {
		longest = max(longest, answers[i]-answers[i-1])
	}
	return longest
}

// Since returns the failures of requests that were sent at a time or later.
func (f Figures) Since(at time.Duration) (failures []Failure) {
	for _, failure := range f.Failures {
		if failure.At >= at {
			failures = append(failures, failure)
		}
	}
	return failures
}

// Over returns when the last request was sent that failed, 0 when none did.
func (f Figures) Over() (over time.Duration) {
	if len(f.Failures) == 0 {
		return 0
	}
	return slices.MaxFunc(f.Failures, func(a, b Failure) int { return cmp.Compare(a.At, b.At) }).At
}

// String returns the figures in one line.
func (f Figures) String() string {
	return fmt.Sprintf("%d requests in %s, %d acknowledged writes, %d failed, no write was acknowledged for %s at most, the slowest answer took %s, held for %s",
		f.Requests, f.Took.Round(time.Second), f.Writes, len(f.Failures), f.Stall.Round(time.Millisecond), f.Slowest.Round(time.Millisecond), f.Held.Round(time.Millisecond))
}
