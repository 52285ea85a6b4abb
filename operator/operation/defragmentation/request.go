package defragmentation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterregistry/operator/internal/contract"
)

// requestValid is for how long a request is honored: one that GitOps or a restore brings
// back much later is not meant any more.
const requestValid = 24 * time.Hour

// requested reports whether a person has asked for a member to be defragmented, which was last
// attempted at a time. A request that is made for later, or by a clock that is ahead, waits.
func (h Handler) requested(member string, attempted time.Time) bool {
	r := h.Request
	return !r.Time.IsZero() && (r.Member == "" || r.Member == member) && attempted.Before(r.Time) && !h.Now.Before(r.Time) && h.Now.Sub(r.Time) < requestValid
}

// HeldRequest says which members a person has asked to be defragmented that is not begun,
// and when the request is made for, if that is later than now. It says nothing when there is
// none.
func (h Handler) HeldRequest() (message string, begins time.Time) {
	var members []string
	for _, member := range h.State.Members {
		later := h
		if h.Now.Before(h.Request.Time) {
			later.Now = h.Request.Time
		}
		if later.requested(member.Name, h.attempted(member.Name)) {
			members = append(members, member.Name)
		}
	}
	slices.Sort(members)
	switch {
	case len(members) == 0:
		return "", time.Time{}
	case h.Now.Before(h.Request.Time):
		return fmt.Sprintf("a person has asked for %s to be defragmented at %s", strings.Join(members, ", "), h.Request.Time.UTC().Format(time.RFC3339)), h.Request.Time
	}
	return fmt.Sprintf("a person has asked for %s to be defragmented, which begins when all parts of the registry are ready, no other operation is under way and spec.paused is false", strings.Join(members, ", ")), time.Time{}
}

// RequestProblem says what is wrong with a request that can't be honored, for as long as one
// is; empty when nothing is.
func (h Handler) RequestProblem() string {
	if _, known := h.Recorded.Members[h.Request.Member]; known || h.Request == (contract.DefragmentRequest{}) || h.Request.Member == "" || h.Now.Sub(h.Request.Time) >= requestValid {
		return ""
	}
	return fmt.Sprintf("etcd has no member %q", h.Request.Member)
}
