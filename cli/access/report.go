package access

import (
	"fmt"
	"slices"
	"strings"
)

// Report is what can-see shows.
type Report struct {
	// Verdict is the whole in a sentence.
	Verdict string `json:"verdict"`
	// Problems are what needs attention.
	Problems []Problem `json:"problems"`
	// User and Groups are who was asked about.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Visibility is that of the registry, and Assumed whether it is not known.
	Visibility string `json:"visibility"`
	Assumed    bool   `json:"visibilityAssumed,omitempty"`
	// Reviewed is true when the API server has been asked, which knows all authorizers, and
	// false when RBAC alone was evaluated.
	Reviewed bool `json:"reviewed"`
	// Gate are the verbs on clusters that let requests in.
	Gate []string `json:"gate"`
	// All is about all clusters, those of no set among them.
	All Scope `json:"all"`
	// Sets are the sets, by their names.
	Sets []Scope `json:"sets"`
	// Grants are the bindings that give something of it.
	Grants []Grant `json:"grants"`
	// Notes say what is not known, and what else there is to know.
	Notes []string `json:"notes,omitempty"`
}

// Scope is all clusters, or those of a set, with what someone may do with them.
type Scope struct {
	// Name is that of the set, empty for all clusters.
	Name string `json:"name,omitempty"`
	// Clusters are those in it, as far as the one who asks sees them, null when they could
	// not be listed.
	Clusters []string `json:"clusters"`
	// Read is whether the ClusterSet itself can be read.
	Read bool `json:"read"`
	// See are the verbs that read the clusters, and Change those that write them.
	See    []string `json:"see"`
	Change []string `json:"change"`
	// Join is whether clusters may be moved into and out of the set.
	Join bool `json:"join"`
}

// Problem is something that needs attention.
type Problem struct {
	Message string `json:"message"`
	// Next is what to do.
	Next string `json:"next"`
}

// scene is what a report is made of.
type scene struct {
	who        who
	visibility visibility
	judge      *judge
	// sets are their names, and members the clusters of each; those of no set are under
	// the empty name.
	sets    []string
	members map[string][]string
	// hidden is whether the clusters could not be listed.
	hidden bool
}

// first are the rights that are asked before those of single sets.
func (s *scene) first() []Right {
	out := []Right{}
	for _, verb := range slices.Concat(reads, writes) {
		out = append(out, gate(verb))
	}
	if s.visibility.value != visibleAll {
		for _, verb := range decided {
			out = append(out, decision(verb, ""))
		}
	}
	return append(out, read(""))
}

// second are the rights of single sets that the first ones don't include. To move a
// cluster is asked by name in any case, as servers do.
func (s *scene) second() []Right {
	out := []Right{}
	for _, set := range s.sets {
		if !s.judge.allowed[read("")] {
			out = append(out, read(set))
		}
		for _, verb := range decided {
			if s.visibility.value != visibleAll && !s.judge.allowed[decision(verb, "")] {
				out = append(out, decision(verb, set))
			}
		}
		out = append(out, join(set))
	}
	return out
}

// decides reports whether the decision lets a verb at the clusters of a set, or at all.
func (s *scene) decides(verb, set string) bool {
	return s.visibility.value == visibleAll || s.judge.allowed[decision(verb, "")] || s.judge.allowed[decision(verb, set)]
}

// scope returns what someone may do with the clusters of a set, or with all.
func (s *scene) scope(set string) Scope {
	out := Scope{Name: set, Clusters: s.clusters(set), See: []string{}, Read: s.judge.allowed[read("")] || s.judge.allowed[read(set)], Join: set != "" && s.judge.allowed[join(set)]}
	if s.decides("get", set) {
		out.See = s.judge.those(reads, gate)
	}
	out.Change = s.judge.those(writes, gate)
	out.Change = slices.DeleteFunc(out.Change, func(verb string) bool {
		if verb == "create" {
			// A cluster that is created in a set joins it.
			return !s.decides(verb, set) || set != "" && !out.Join
		}
		// To who does not see a cluster there is none to change.
		return !s.decides(verb, set) || !s.decides("get", set)
	})
	return out
}

// clusters returns those of a set, or all.
func (s *scene) clusters(set string) []string {
	if s.hidden {
		return nil
	}
	out := []string{}
	for name, members := range s.members {
		if set == "" || set == name {
			out = append(out, members...)
		}
	}
	slices.Sort(out)
	return out
}

// report returns what is shown.
func (s *scene) report() *Report {
	out := &Report{
		Problems: []Problem{}, User: s.who.user, Groups: s.who.groups, Visibility: s.visibility.value, Reviewed: s.judge.reviewer != nil,
		Gate: s.judge.those(slices.Concat(reads, writes), gate), All: s.scope(""), Sets: []Scope{}, Grants: s.judge.explained(),
	}
	if out.Grants == nil {
		out.Grants = []Grant{}
	}
	for _, set := range s.sets {
		out.Sets = append(out.Sets, s.scope(set))
	}
	s.withoutGate(out)
	s.addNotes(out)
	out.Verdict = s.verdict(out)
	return out
}

// withoutGate adds what the decision lets someone do, and the gate does not.
func (s *scene) withoutGate(report *Report) {
	if s.visibility.value == visibleAll {
		return
	}
	in := "the API server refuses the request before the registry decides"
	if s.visibility.host {
		in = "the host cluster refuses the request before the registry sees it"
	}
	for _, test := range []struct {
		level          string
		decided, gates []string
	}{{"viewer", []string{"get"}, reads}, {"editor", writes, writes}} {
		var there, missing []string
		given := func(verb string) bool {
			return s.decides(verb, "") || slices.ContainsFunc(s.sets, func(set string) bool { return s.decides(verb, set) })
		}
		for _, verb := range test.decided {
			if given(verb) {
				there = append(there, verb)
			}
		}
		for _, verb := range test.gates {
			if !s.judge.allowed[gate(verb)] && len(there) > 0 && (test.level == "viewer" || given(verb)) {
				missing = append(missing, verb)
			}
		}
		if len(missing) > 0 {
			report.Problems = append(report.Problems, Problem{
				Message: fmt.Sprintf("the decision is there (%s on %s), and the gate is not (%s on %s): %s", strings.Join(there, ", "), setClusters, strings.Join(missing, ", "), clusters, in),
				Next:    fmt.Sprintf("bind the ClusterRole %s to them, as what \"kubectl registry grant SET --%s\" prints does", prefix+test.level, test.level),
			})
		}
	}
}

// addNotes adds what is to be known besides.
func (s *scene) addNotes(report *Report) {
	note := func(format string, args ...any) { report.Notes = append(report.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case s.visibility.unknown != "":
		report.Assumed, report.Visibility = true, visibleSets
		note("whether sets are told apart is not known, and shown as if they were: %s", s.visibility.unknown)
	case s.visibility.value == visibleAll:
		note("the visibility is All: whoever passes the gate sees all clusters; --visibility=ClusterSets shows what they would see then")
	}
	if s.visibility.differs != "" {
		note("%s", s.visibility.differs)
	}
	if allowed, refused := s.judge.differing(); len(allowed)+len(refused) > 0 {
		var parts []string
		if len(allowed) > 0 {
			parts = append(parts, "it allows what no binding gives: "+enumerate(allowed))
		}
		if len(refused) > 0 {
			parts = append(parts, "it refuses what a binding gives: "+enumerate(refused))
		}
		note("something other than RBAC decides, such as a webhook or another authorizer of the API server; %s", strings.Join(parts, "; "))
	}
	if s.judge.policy == nil {
		return
	}
	for _, lost := range s.judge.policy.lost {
		note("%s", lost)
	}
	if !s.judge.allowed[gate("get")] {
		for _, named := range s.judge.policy.named(clusters, nil) {
			note("the gate is there for single clusters by name alone, which is not shown: %s", named)
		}
	}
	if s.visibility.value != visibleAll {
		for _, named := range s.judge.policy.named(setClusters, s.sets) {
			note("a role names sets that are not shown, because they don't exist or were not asked for: %s", named)
		}
	}
}

// verdict returns the whole in a sentence.
func (s *scene) verdict(report *Report) string {
	if len(report.All.See) > 0 {
		return fmt.Sprintf("%s sees all clusters%s%s", report.User, s.count(report.All.Clusters), s.changing(report))
	}
	var seen []string
	some := 0
	for _, set := range report.Sets {
		if len(set.See) > 0 {
			some++
			seen = append(seen, set.Clusters...)
		}
	}
	if some == 0 {
		return report.User + " sees no clusters" + s.changing(report)
	}
	return fmt.Sprintf("%s sees the clusters of %d of %d sets%s%s", report.User, some, len(report.Sets), s.count(seen), s.changing(report))
}

func (s *scene) count(names []string) string {
	if s.hidden {
		return ""
	}
	return fmt.Sprintf(" (%d)", len(names))
}

func (s *scene) changing(report *Report) string {
	changed, joined := 0, 0
	for _, set := range report.Sets {
		if len(set.Change) > 0 {
			changed++
		}
		if set.Join {
			joined++
		}
	}
	out := ", changes none"
	switch {
	case len(report.All.Change) > 0:
		out = ", changes all"
	case changed > 0:
		out = fmt.Sprintf(", changes those of %d", changed)
	}
	if joined > 0 {
		out += fmt.Sprintf(", and may move those of %d", joined)
	}
	return out
}
