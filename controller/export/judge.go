package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// judge sums up how the namespace is. Single objects that wait for a person or for someone's
// finalizer are said, and the function still runs: whoever may write an object there, or delete
// a cluster of the registry, can bring that about.
func (s *session) judge() verdict {
	v := verdict{state: contract.FunctionRunning}
	var messages []string
	add := func(state contract.FunctionState, message string, arguments ...any) {
		messages = append(messages, fmt.Sprintf(message, arguments...))
		if ranks[state] > ranks[v.state] {
			v.state = state
		}
	}
	if passing := s.passing.Load(); passing != nil {
		add(passing.state, "%s", passing.message)
	}
	if err := s.unread.lasting(s.Clock.Now()); err != nil {
		add(contract.FunctionFailing, "%s", s.unreadable(err))
	}
	if waits := s.waits(); waits != nil {
		add(waits.state, "%s", waits.message)
		v.waiting = waits.waiting
	}
	if s.unretired != nil {
		add(contract.FunctionFailing, "In namespace %q, objects of formats that are no longer exported there may be left: %v.", s.Namespace, s.unretired)
	}
	if len(s.kept) > 0 {
		add(contract.FunctionRunning, "%s", s.keptMessage())
	}
	if names := slices.Sorted(maps.Keys(s.held)); len(names) > 0 {
		add(contract.FunctionRunning, "In namespace %q, %s that are not of this registry (the first %s) have the names of its clusters, and are left alone: %s. Delete them, or select other clusters.", s.Namespace, s.kind.Words, s.held[names[0]], s.list(names))
	}
	if names := slices.Sorted(maps.Keys(s.without)); len(names) > 0 {
		add(contract.FunctionRunning, "In namespace %q, there are no %s of some clusters: %s. Of the first: %s", s.Namespace, s.kind.Words, format.List(names), s.without[names[0]].Message)
	}
	if names := s.mistaken(); len(names) > 0 {
		add(contract.FunctionRunning, "Namespace %q has no %s of clusters at whose endpoints other clusters answer (IdentityVerified is False): %s. Correct the endpoints of their entries; of a cluster that was made again, delete the entry and join it.", s.Namespace, s.kind.Words, format.List(names))
	}
	if names := slices.Sorted(maps.Keys(s.undeleted)); len(names) > 0 {
		add(contract.FunctionFailing, "In namespace %q, %s of clusters that are gone can't be deleted: %s. The error of the first is: %v.", s.Namespace, s.kind.Words, s.list(names), s.undeleted[names[0]])
	}
	var names []string
	for name := range s.failing {
		if s.queue.NumRequeues(name) >= persistent {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		add(s.unwritten(names), "In namespace %q, %s can't be written: %s. The error of the first is: %v%s.", s.Namespace, s.kind.Words, s.list(names), s.failing[names[0]], s.hint(s.failing[names[0]]))
	}
	names = nil
	for name, is := range s.ending {
		if s.Clock.Since(is.since) >= patience {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		add(contract.FunctionRunning, "In namespace %q, %s that were deleted wait for their finalizers, the first for %s: %s. They are made again once they are gone, if their clusters are selected.", s.Namespace, s.kind.Words, strings.Join(s.ending[names[0]].finalizers, ", "), s.list(names))
	}
	v.message = strings.Join(messages, "\n")
	return v
}

// unwritten is how the function is when some objects can't be written: it runs where the
// host cluster takes those of other clusters, and finds the content of these not valid.
func (s *session) unwritten(names []string) contract.FunctionState {
	all, err := s.lister.List(s.Selector)
	all = slices.DeleteFunc(all, func(cluster *v1beta1.Cluster) bool { return !s.selects(cluster) })
	if err != nil || len(names) >= len(all) || slices.ContainsFunc(names, func(name string) bool { return !apierrors.IsInvalid(s.failing[name]) }) {
		return contract.FunctionFailing
	}
	return contract.FunctionRunning
}

// hint says more of an error that does not name its cause.
func (s *session) hint(err error) string {
	if strings.Contains(err.Error(), "field not declared in schema") {
		return "; the installed CRD is of another release: install " + s.kind.CRD
	}
	return ""
}

// list puts the names of the objects of clusters into a message.
func (s *session) list(clusters []string) string { return format.List(s.names(clusters)) }

// names returns those of the objects of clusters.
func (s *session) names(clusters []string) (out []string) {
	for _, name := range clusters {
		out = append(out, s.kind.Prefix+name)
	}
	return out
}

// mistaken returns the clusters that have no object since another one answers.
func (s *session) mistaken() (out []string) {
	for name := range s.cut {
		if _, other := s.without[name]; !other {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
