package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	coordinationv1 "k8s.io/api/coordination/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// patience is how long beyond its own duration a Lease may be without a renewal: the
	// clocks of nodes differ.
	patience = time.Minute
	// longest is the longest duration of a Lease that is believed.
	longest = 5 * time.Minute
	// reportMost is how many bytes of a report are read, and messageMost how many
	// characters of a message are passed on.
	reportMost, messageMost = 64 << 10, 500
)

// reported is done when the leader says that every function runs. Whoever may write
// Leases in the namespace may have written this one.
func (s *Stage) reported(lease *coordinationv1.Lease, functions []string) verdict.Verdict {
	name := s.Name(contract.ControllerSuffix)
	if lease == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return verdict.Waiting(operatorv1alpha1.ReasonStarting, "no replica leads yet: the Lease %s has no holder", name)
	}
	holder := *lease.Spec.HolderIdentity
	shown := plain(holder)
	if since, lost := s.lost(lease); lost {
		return verdict.Waiting(operatorv1alpha1.ReasonLeaderLost, "%s leads by the Lease %s, which it has not renewed since %s, and no other replica has taken over, so that what entries say of their clusters may be out of date: see its log (kubectl --namespace=%s logs deployment/%s)", shown, name, since, s.Registry.Namespace, name)
	}
	text := lease.Annotations[contract.ControllerStatusAnnotation]
	if text == "" {
		return verdict.Waiting(operatorv1alpha1.ReasonStarting, "%s leads, and has not reported yet how its functions are", shown)
	}
	status, err := parse(text)
	if err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonReportInvalid, "the annotation %s of the Lease %s is not a report: %s; the controller writes it again within a minute, unless someone else does", contract.ControllerStatusAnnotation, name, plain(err.Error()))
	}
	if status.Holder != holder {
		return verdict.Waiting(operatorv1alpha1.ReasonStarting, "%s leads, and has not reported yet how its functions are; the last report is of %s", shown, plain(status.Holder))
	}
	return states(status.Functions, functions)
}

// led adds to what is wrong with the controller that no replica leads any more, if so.
func (s *Stage) led(ctx context.Context, v verdict.Verdict) verdict.Verdict {
	lease, err := s.lease(ctx)
	if err != nil {
		return verdict.Failed(err)
	}
	return s.abandoned(lease, v)
}

// abandoned adds to what is wrong with the controller, whatever that is, that no replica leads
// any more, and since when: what entries say of their clusters is of then, and who reads them
// goes by that reason.
func (s *Stage) abandoned(lease *coordinationv1.Lease, v verdict.Verdict) verdict.Verdict {
	if v.Complete() || v.Err != nil || v.Reason == operatorv1alpha1.ReasonLeaderLost || lease == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return v
	}
	if since, lost := s.lost(lease); lost {
		v.Reason = operatorv1alpha1.ReasonLeaderLost
		v.Message = fmt.Sprintf("no replica has renewed the Lease %s since %s, so that what entries say of their clusters may be out of date: %s", lease.Name, since, v.Message)
	}
	return v
}

// lost reports whether no one renews a Lease, and since when.
func (s *Stage) lost(lease *coordinationv1.Lease) (since string, lost bool) {
	if lease.Spec.RenewTime == nil {
		return "it was made", true
	}
	valid := longest
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds >= 0 {
		valid = min(valid, time.Duration(*seconds)*time.Second)
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339), s.Now.Sub(lease.Spec.RenewTime.Time) > valid+patience
}

// parse reads a report.
func parse(text string) (contract.ControllerStatus, error) {
	var status contract.ControllerStatus
	if len(text) > reportMost {
		return status, fmt.Errorf("it has %d bytes, of which %d are the most", len(text), reportMost)
	}
	err := json.Unmarshal([]byte(text), &status)
	return status, err
}

// grave are the states in which a function does not do its work, the worst first, with
// the reason of the condition and what is said of it.
var grave = []struct {
	state         contract.FunctionState
	reason, words string
}{
	{contract.FunctionFailing, operatorv1alpha1.ReasonFailing, "is failing"},
	{contract.FunctionRefused, operatorv1alpha1.ReasonRefused, "is refused"},
	{contract.FunctionIsolated, operatorv1alpha1.ReasonIsolated, "is isolated"},
	{contract.FunctionStarting, operatorv1alpha1.ReasonStarting, "is starting"},
}

// states is done when each function runs, with a note of the objects that they hold, and of
// ranges that they don't know. The worst state is the reason, and the message names all that
// are not well. What is reported of other functions does not count.
func states(reported map[string]contract.FunctionStatus, functions []string) verdict.Verdict {
	reason, worst := "", len(grave)+1
	var problems, held, unknown []string
	for _, function := range functions {
		is, known := reported[function]
		if message := plain(is.Message); known && is.State == contract.FunctionRangesUnknown {
			unknown = append(unknown, function+": "+message)
			continue
		} else if known && is.State == contract.FunctionRunning {
			if message != "" {
				held = append(held, function+": "+message)
			}
			continue
		}
		rank, why, problem := gravity(function, is, known)
		if problems = append(problems, problem); rank < worst {
			reason, worst = why, rank
		}
	}
	notes := append(slices.Clip(held), unknown...)
	switch text := strings.Join(notes, "; "); {
	case len(problems) == 0 && len(held) > 0:
		return done.Note(operatorv1alpha1.ReasonObjectsHeld, text)
	case len(problems) == 0 && len(unknown) > 0:
		return done.Note(operatorv1alpha1.ReasonRangesUnknown, text)
	case len(problems) == 0:
		return done
	}
	// A change of the report is watched.
	return verdict.Waiting(reason, "%s", strings.Join(append(problems, notes...), "; ")).In(verdict.Vigil)
}

// gravity says how bad it is that a function does not run, with the reason and a message.
func gravity(function string, is contract.FunctionStatus, known bool) (rank int, reason, problem string) {
	if !known {
		return len(grave), operatorv1alpha1.ReasonStarting, function + " is not reported of yet"
	}
	for i, g := range grave {
		if is.State != g.state {
			continue
		}
		problem = function + " " + g.words
		if !is.Since.IsZero() {
			problem += " since " + is.Since.UTC().Format(time.RFC3339)
		}
		if message := plain(is.Message); message != "" {
			problem += ": " + message
		}
		return i, g.reason, problem
	}
	return 0, operatorv1alpha1.ReasonReportInvalid, fmt.Sprintf("%s is reported to be in the state %q, which this operator does not know", function, plain(string(is.State)))
}

// plain returns a text of the controller, or of whoever wrote in its place, as one line
// of bounded length.
func plain(text string) string {
	runes := []rune(strings.ToValidUTF8(text[:min(len(text), 4*messageMost)], ""))
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	cut := ""
	if len(runes) > messageMost {
		runes, cut = runes[:messageMost], "..."
	}
	return strings.TrimRight(strings.Join(strings.Fields(string(runes)), " "), ". ") + cut
}
