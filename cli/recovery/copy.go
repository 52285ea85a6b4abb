package recovery

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/operator/restore"
)

// Copy is a copy of the data that is left.
type Copy struct {
	// From and Name are what spec.recovery has of it.
	From v1alpha1.RecoverySource `json:"from"`
	Name string                  `json:"name"`
	// Revision is that with which it ends, and RevisionsLost how many of the known ones it
	// lacks; neither is set where that is not known.
	Revision      int64  `json:"revision,omitempty"`
	RevisionsLost *int64 `json:"revisionsLost,omitempty"`
	// TakenTime and VerifiedTime are those of a backup, and Location is where it is.
	TakenTime    *metav1.Time `json:"takenTime,omitempty"`
	VerifiedTime *metav1.Time `json:"verifiedTime,omitempty"`
	Location     string       `json:"location,omitempty"`
	// Lost says what would be lost with it, and Message what else is known of it.
	Lost    string `json:"lost"`
	Message string `json:"message,omitempty"`
	// Refused is why the operator would not continue with it.
	Refused string `json:"refused,omitempty"`
	// Recommended is true for the one that loses the least, as far as that is known.
	Recommended bool `json:"recommended,omitempty"`
	// AcceptDataLossUpTo is what spec.recovery has to accept.
	AcceptDataLossUpTo int64 `json:"acceptDataLossUpTo"`
	// Command has the operator continue with it. It is empty for one that is refused.
	Command string `json:"command,omitempty"`

	// runs is true for a member that runs, and learner for one that may lack what others had;
	// verified is true for a backup that was.
	runs, learner, verified bool
}

// copies returns all copies of the data that are left, the recommended one first.
func (s *scene) copies() []Copy {
	lost := s.registry.Status.Recovery
	out := []Copy{}
	for _, m := range lost.Members {
		if !m.DataGone {
			out = append(out, s.member(m))
		}
	}
	out = append(out, s.saved()...)
	s.bound(out)
	if i := recommended(out); i >= 0 {
		out[i].Recommended = true
	}
	for i := range out {
		c := &out[i]
		c.Lost = c.loss(lost.LastRevision, s.now)
		if c.Refused == "" {
			c.Command = s.command(c)
		}
	}
	slices.SortStableFunc(out, order)
	return out
}

// member returns the copy that a member has.
func (s *scene) member(m v1alpha1.RecoveryMember) Copy {
	c := Copy{From: v1alpha1.RecoverFromMember, Name: m.Name, Revision: m.Revision, Message: m.Message, runs: s.runs(m.Name)}
	if m.Revision > 0 {
		c.lacks(s.registry.Status.Recovery.LastRevision)
	}
	if s.registry.Spec.Etcd.External != nil && m.Revision == 0 {
		c.Refused = "it does not answer, and only what an external etcd serves can be approved"
	}
	c.learner = slices.ContainsFunc(s.registry.Status.Etcd.Members, func(e v1alpha1.EtcdMember) bool { return e.Name == m.Name && e.Learner })
	if c.learner {
		c.Message += "; it was being added to etcd, and may lack data that the others had: the operator refuses it while data of another member is left"
	}
	return c
}

// lacks notes how many revisions the copy lacks of those up to the last one that is known.
func (c *Copy) lacks(last int64) {
	lost := max(0, last-c.Revision)
	c.RevisionsLost, c.AcceptDataLossUpTo = &lost, lost
}

// bound has a member that does not say how far it goes lose no more of what is known than the
// best of the other copies: the operator refuses it if it does.
func (s *scene) bound(all []Copy) {
	best := int64(-1)
	for i := range all {
		if c := &all[i]; c.sure() && (best < 0 || *c.RevisionsLost < best) {
			best = *c.RevisionsLost
		}
	}
	for i := range all {
		c := &all[i]
		if c.RevisionsLost == nil {
			c.AcceptDataLossUpTo = max(0, best)
		}
		if c.From == v1alpha1.RecoverFromMember {
			c.refuse(s.approval(c).Refuse())
		}
	}
}

// approval returns what spec.recovery would approve with a copy.
func (s *scene) approval(c *Copy) restore.Approval {
	lost := s.registry.Status.Recovery
	return restore.Approval{Recovery: v1alpha1.Recovery{From: c.From, Name: c.Name, AcceptDataLossUpTo: c.AcceptDataLossUpTo, ApprovedFor: lost.ID}, Lost: *lost}
}

func (c *Copy) refuse(err error) {
	if err != nil {
		c.Refused = err.Error()
	}
}

// sure reports whether it is known that the copy can be used, and how much it lacks.
func (c *Copy) sure() bool {
	return c.Refused == "" && c.RevisionsLost != nil && !c.learner && (c.From == v1alpha1.RecoverFromMember || c.verified)
}

// recommended returns the copy that loses the least, -1 for none: of what is known, or else a
// member that runs and is refused by its bound if it loses more than a backup.
func recommended(all []Copy) int {
	best := -1
	for i := range all {
		if all[i].sure() && (best < 0 || *all[i].RevisionsLost < *all[best].RevisionsLost) {
			best = i // members come before backups
		}
	}
	if best >= 0 && all[best].From == v1alpha1.RecoverFromMember {
		return best
	}
	find := func(fits func(c *Copy) bool) int {
		return slices.IndexFunc(all, func(c Copy) bool { return c.Refused == "" && !c.learner && fits(&c) })
	}
	if i := find(func(c *Copy) bool { return c.runs && c.RevisionsLost == nil }); i >= 0 {
		return i
	}
	if best >= 0 {
		return best
	}
	return find(func(*Copy) bool { return true })
}

// order has the recommended copy first, then those that can be used, by what they lose, then
// those of which that is not known.
func order(a, b Copy) int {
	rank := func(c Copy) int {
		switch {
		case c.Recommended:
			return 0
		case c.Refused != "":
			return 3
		case c.RevisionsLost == nil:
			return 2
		}
		return 1
	}
	if by := cmp.Compare(rank(a), rank(b)); by != 0 || a.RevisionsLost == nil || b.RevisionsLost == nil {
		return by
	}
	return cmp.Compare(*a.RevisionsLost, *b.RevisionsLost)
}

// loss says what would be lost.
func (c *Copy) loss(last int64, now time.Time) string {
	newer := "newer ones that clients were answered, if there are any"
	known := "none of the revisions that are known; "
	switch {
	case c.RevisionsLost == nil && last == 0:
		return "up to which revision it goes is not known, nor how much there was: whatever it lacks, which the operator can't tell"
	case c.RevisionsLost == nil:
		return fmt.Sprintf("up to which revision it goes is not known. Before its data is used, the operator finds that out: with this command, it is refused, and stays as it is, if it ends before revision %d; and %s", max(0, last-c.AcceptDataLossUpTo), newer)
	case *c.RevisionsLost == 1:
		known = "one revision that is known, and "
	case *c.RevisionsLost > 1:
		known = fmt.Sprintf("%d revisions that are known, and ", *c.RevisionsLost)
	}
	if c.From == v1alpha1.RecoverFromBackup && c.TakenTime != nil {
		return known + fmt.Sprintf("all else that was written after %s, %s", stamp(*c.TakenTime), backup.Ago(c.TakenTime, now))
	}
	return known + newer
}

// command returns the command that approves a copy. What is in it comes from the status: it is
// quoted for a shell.
func (s *scene) command(c *Copy) string {
	approval, err := json.Marshal(map[string]any{"spec": map[string]any{"recovery": struct {
		From               v1alpha1.RecoverySource `json:"from"`
		Name               string                  `json:"name"`
		AcceptDataLossUpTo int64                   `json:"acceptDataLossUpTo"` // always: an earlier number goes
		ApprovedFor        string                  `json:"approvedFor"`
	}{c.From, c.Name, c.AcceptDataLossUpTo, s.registry.Status.Recovery.ID}}})
	if err != nil { // no type in it can cause that
		return ""
	}
	return s.patch(string(approval))
}

// patch returns the command that changes the registry.
func (s *scene) patch(change string) string {
	return fmt.Sprintf("kubectl -n %s patch creg %s --type=merge -p %s", s.registry.Namespace, s.registry.Name, command.Quote(change))
}

// title names a copy.
func (c *Copy) title() string {
	if c.From == v1alpha1.RecoverFromBackup {
		return "backup " + c.Name
	}
	return "member " + c.Name
}

// key names a registry.
func key(registry *v1alpha1.ClusterRegistry) string { return registry.Namespace + "/" + registry.Name }

// stamp writes a time.
func stamp(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }
