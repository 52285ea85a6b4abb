package fleetevents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// The kinds of events that the program says.
const (
	added   = "added"
	changed = "changed"
	removed = "removed"
)

// Event is what the program has said of a cluster.
type Event struct{ Kind, Name, UID, Version string }

func (e Event) String() string { return strings.Join([]string{e.Kind, e.Name, e.UID, e.Version}, " ") }

// parse returns the events among the lines of the program, which also has the messages of
// client-go in its log.
func parse(lines []string) []Event {
	var out []Event
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 4 && slices.Contains([]string{added, changed, removed}, words[0]) {
			out = append(out, Event{words[0], words[1], words[2], words[3]})
		}
	}
	return out
}

// replay returns the clusters that there are after events, by name, and what can't be true
// of them. It begins with the clusters that there were before, which it does not change.
func replay(before map[string]Event, events []Event) (after map[string]Event, problems []string) {
	after = map[string]Event{}
	seen := map[string]bool{} // UID and resourceVersion
	for name, event := range before {
		after[name] = event
		seen[event.UID+" "+event.Version] = true
	}
	for i, event := range events {
		now, there := after[event.Name]
		version := event.UID + " " + event.Version
		problem := ""
		switch {
		case event.Kind == added && there:
			problem = "it is there already, as " + now.String()
		case event.Kind != added && !there:
			problem = "it is not there"
		case event.Kind != added && now.UID != event.UID:
			problem = "what is there is " + now.String()
		case event.Kind != removed && seen[version]:
			problem = "that version was told before"
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("event %d, %q: %s", i, event, problem))
		}
		seen[version] = true
		if after[event.Name] = event; event.Kind == removed {
			delete(after, event.Name)
		}
	}
	return after, problems
}

// compare returns how a state that was replayed differs from what a registry lists.
func compare(state map[string]Event, list []v1beta1.Cluster) error {
	for _, cluster := range list {
		event, there := state[cluster.Name]
		if !there || event.UID != string(cluster.UID) || event.Version != cluster.ResourceVersion {
			return fmt.Errorf("%s with the UID %s is at %s, and the program has said of it last: %q", cluster.Name, cluster.UID, cluster.ResourceVersion, event)
		}
	}
	if len(state) != len(list) {
		return fmt.Errorf("there are %d clusters, and after what the program has said there would be %d", len(list), len(state))
	}
	return nil
}

// Life is a cluster that was written.
type Life struct {
	Name, UID string
	// Versions are the resourceVersions of its creation and of each change.
	Versions []string
	// Deleted is true when it was deleted.
	Deleted bool
}

// missed compares events with the lives of clusters that were written meanwhile. It returns
// what was missed or doubled, and how many changes were left out because of later ones.
func missed(events []Event, lives []Life) (problems []string, merged int) {
	said := map[string]int{}
	for _, event := range events {
		said[event.Kind+" "+event.Name+" "+event.UID]++
		if event.Kind != removed {
			said[event.UID+" "+event.Version]++
		}
	}
	for _, life := range lives {
		about := life.Name + " " + life.UID
		if got := said[added+" "+about]; got != 1 {
			problems = append(problems, fmt.Sprintf("%s was added once, and the program has said so %d times", about, got))
		}
		want := 0
		if life.Deleted {
			want = 1
		}
		if got := said[removed+" "+about]; got != want {
			problems = append(problems, fmt.Sprintf("%s was removed %d times, and the program has said so %d times", about, want, got))
		}
		for _, version := range life.Versions {
			if said[life.UID+" "+version] == 0 {
				merged++
			}
		}
	}
	return problems, merged
}

// difference is what a program on informers has to say when a registry goes from one list of
// clusters to another, without the order.
func difference(before, after []v1beta1.Cluster) []string {
	was := map[string]string{}
	for _, cluster := range before {
		was[cluster.Name+" "+string(cluster.UID)] = cluster.ResourceVersion
	}
	out := []string{}
	for _, cluster := range after {
		about := cluster.Name + " " + string(cluster.UID)
		switch version, there := was[about]; {
		case !there:
			out = append(out, added+" "+about+" "+cluster.ResourceVersion)
		case version != cluster.ResourceVersion:
			out = append(out, changed+" "+about+" "+cluster.ResourceVersion)
		}
		delete(was, about)
	}
	for about, version := range was {
		out = append(out, removed+" "+about+" "+version)
	}
	slices.Sort(out)
	return out
}
