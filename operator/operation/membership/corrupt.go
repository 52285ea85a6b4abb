package membership

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
)

// alarms observes the alarms that are raised. While CORRUPT is, etcd refuses every write, so
// waiting is an outage: a member whose data differs from that of a majority, which agrees on
// its own, is lost at once, and the alarm of one that was removed is disarmed.
func (c *Change) alarms(ctx context.Context, seen *plan.Observed) {
	alarm, raised := c.State.Raised()
	if !raised {
		return
	}
	seen.Alarm = alarm.Type
	if alarm.Type != etcd.AlarmCorrupt {
		return
	}
	by := map[string]bool{}
	for _, other := range c.State.Alarms {
		by[other.MemberID] = by[other.MemberID] || other.Type == etcd.AlarmCorrupt
	}
	if len(by) != 1 || alarm.MemberID == "" {
		return // no majority is known, or there is more than one thing wrong
	}
	c.asIfServing(seen)
	i := slices.IndexFunc(seen.List, func(m plan.Listed) bool { return m.ID == alarm.MemberID })
	if i < 0 {
		seen.Outdated = c.Etcd.Outlier(ctx, "") == nil
		return
	}
	ordinal := seen.List[i].Ordinal
	byPerson := c.replaceAfter() == 0 && !slices.Contains(c.spec().Replace, alarm.MemberID)
	if ordinal == plan.None || byPerson || c.Etcd.Outlier(ctx, c.member(ordinal)) != nil {
		return
	}
	c.differs = c.member(ordinal)
	seen.Alarm, seen.Lost[ordinal] = "", "its data differs from that of all other members"
	seen.List[i].Serves, seen.List[i].Leads = false, false
}

// compared says which members hold different data, or why that is not known; nothing where all
// hold the same.
func (c *Change) compared(ctx context.Context) (differs, unknown string) {
	err := c.Etcd.Outlier(ctx, "")
	if found := (*etcd.DataDiffers)(nil); errors.As(err, &found) {
		return found.Error(), ""
	}
	if err != nil {
		return "", err.Error()
	}
	return "", ""
}

// asIfServing takes members for such as serve that have a leader: no one completes a read.
func (c *Change) asIfServing(seen *plan.Observed) {
	for i := range seen.List {
		j := slices.IndexFunc(c.State.Members, func(m etcd.Member) bool { return m.ID == seen.List[i].ID })
		if j >= 0 && !seen.List[i].Learner {
			seen.List[i].Serves, seen.List[i].Leads = c.State.Members[j].Leader != "", c.State.Members[j].Leads()
		}
	}
}
