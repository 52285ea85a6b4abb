package defragmentation

import (
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
)

// retry is when a member is defragmented again whose free pages did not become fewer, or more
// again, and retryFull when one of an etcd that is full is, if that makes room.
const (
	retry     = time.Hour
	retryFull = 5 * time.Minute
)

// Full reports whether etcd refuses writes since it is full: nothing else is as urgent, and
// no maintenance window is waited for.
func (h Handler) Full() bool { return h.State.NoSpace() }

// Due reports whether there is something to do now, and nothing is against it.
func (h Handler) Due() bool {
	next := h.next()
	return (next != "" || h.compactable() != nil) && h.gate(next) == nil
}

// Held says which members wait for the maintenance window, and when it opens next, in its
// time zone: zero when it never does. It says nothing when none does.
func (h Handler) Held() (message string, opens time.Time) {
	held := slices.DeleteFunc(h.candidates(), h.permitted)
	if len(held) == 0 {
		return "", time.Time{}
	}
	slices.Sort(held)
	message = "much of the file is free of " + strings.Join(held, ", ") + ", to be defragmented "
	switch opens = h.Window.Next(h.Now); {
	case !h.Window.Given():
		message += "in a maintenance window, since a single member answers nothing meanwhile, and there is none: add spec.etcd.maintenanceWindow, or ask for it (kubectl registry etcd defrag)"
	case opens.IsZero():
		message += "in the maintenance window, which does not open"
	default:
		message += "in the maintenance window, which opens next at " + opens.Format(time.RFC3339)
		if len(h.Recorded.Members) == 1 {
			message += ": the registry is unavailable then for about a second per 100 MB that are in use"
		}
	}
	return message, opens
}

// permitted reports whether a member may be defragmented now. Where no one has asked for it,
// and etcd is not full, that is in the window, or at any time where none is given. A single
// member is not without a window, since the registry is unavailable meanwhile.
func (h Handler) permitted(member string) bool {
	switch {
	case h.Full() || h.requested(member, h.attempted(member)):
		return true
	case !h.Window.Given():
		return len(h.Recorded.Members) > 1
	}
	return h.Window.Open(h.Now)
}

// next returns the member to defragment next, the leader last; empty when none is to be now.
func (h Handler) next() string {
	next, _ := h.State.Next(h.due())
	return next
}

// due returns the members that are to be defragmented now.
func (h Handler) due() []string {
	return slices.DeleteFunc(h.candidates(), func(member string) bool { return !h.permitted(member) })
}

// candidates returns the members that are to be defragmented, now or in the window.
func (h Handler) candidates() []string {
	var out []string
	for _, member := range h.State.Members {
		at := h.attempted(member.Name)
		wanted := member.Fragmented() && h.Now.Sub(at) >= retry
		if h.Full() {
			wanted = h.makesRoom(member, at)
		}
		if member.Err == nil && (wanted || h.requested(member.Name, at)) {
			out = append(out, member.Name)
		}
	}
	return out
}

// makesRoom reports whether a member of an etcd that is full is to be defragmented. After a
// compaction that is tried whatever is in use, since the member does not know at once what
// has become free.
func (h Handler) makesRoom(member etcd.Member, attempted time.Time) bool {
	since := h.Now.Sub(attempted)
	return member.Full() && (member.Fits() && since >= retryFull || attempted.Before(h.compacted()) && since >= retry)
}

// attempted returns when a member was last defragmented, the zero time when that is not known.
func (h Handler) attempted(member string) time.Time {
	i := slices.IndexFunc(h.Etcd.Members, func(m operatorv1alpha1.EtcdMember) bool { return m.Name == member })
	if i < 0 || h.Etcd.Members[i].DefragmentedTime == nil {
		return time.Time{}
	}
	return h.Etcd.Members[i].DefragmentedTime.Time
}
