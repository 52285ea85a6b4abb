package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Backup is a backup in a store.
type Backup struct {
	Manifest
	// Verification is nil when the backup was never verified.
	Verification *Verification
}

// Damaged reports whether the backup is known to be unusable.
func (b Backup) Damaged() bool { return b.Verification != nil && b.Verification.Damage != "" }

// Verified reports whether the backup was restored, and was found to be what it says.
func (b Backup) Verified() bool { return b.Verification != nil && b.Verification.Damage == "" }

// newer compares backups of one lineage. etcd's revision decides, which never goes back
// within a lineage, as clocks do.
func newer(a, b Backup) int {
	return cmp.Or(cmp.Compare(b.Revision, a.Revision), b.Time.Compare(a.Time), strings.Compare(b.Name, a.Name))
}

// NewestFirst returns backups of one lineage, the newest first.
func NewestFirst(all []Backup) []Backup { return slices.SortedFunc(slices.Values(all), newer) }

// Retention says which backups of a lineage stay. The zero value keeps all.
type Retention struct {
	// KeepLast is how many backups stay, at least. Damaged ones do not count.
	KeepLast int
	// KeepFor is how long each backup stays, at least.
	KeepFor time.Duration
}

// Obsolete returns the backups that may go, the oldest first. These always stay, whatever
// the retention says: the newest backup that is not known to be damaged, and the newest
// verified one.
//
// Ages are measured from the newest backup that is not damaged. So nothing goes once
// backups have stopped, and nothing goes because this computer's clock is wrong. If it is
// the clock by which the newest backup was taken that was ahead, now counts.
func (r Retention) Obsolete(all []Backup, now time.Time) []Backup {
	if r.KeepLast <= 0 && r.KeepFor <= 0 {
		return nil
	}
	sorted := NewestFirst(all)
	newest := slices.IndexFunc(sorted, func(b Backup) bool { return !b.Damaged() })
	if newest < 0 {
		return nil // what is damaged is all that there is
	}
	if taken := sorted[newest].Time; taken.Before(now) {
		now = taken
	}
	var out []Backup
	good, verified := 0, 0
	for _, b := range sorted {
		stays := r.KeepFor > 0 && now.Sub(b.Time) <= r.KeepFor
		if !b.Damaged() {
			stays = stays || good == 0 || good < r.KeepLast
			good++
		}
		if b.Verified() {
			stays = stays || verified == 0
			verified++
		}
		if !stays {
			out = append(out, b)
		}
	}
	slices.Reverse(out)
	return out
}

// Choice says which backup of a lineage is meant: the one with a name, else the newest
// before a time, else the newest.
type Choice struct {
	Name   string
	Before time.Time
}

// Of returns the chosen one of a lineage's backups. One that is known to be damaged is
// never the newest; chosen by its name, it is an error.
func (c Choice) Of(all []Backup) (Backup, error) {
	if c.Name != "" {
		i := slices.IndexFunc(all, func(b Backup) bool { return b.Name == c.Name })
		switch {
		case i < 0:
			return Backup{}, fmt.Errorf("there is no backup %s%s", c.Name, among(all))
		case all[i].Damaged():
			return Backup{}, fmt.Errorf("backup %s is damaged (verified at %s): %s", c.Name, all[i].Verification.Time.Format(time.RFC3339), all[i].Verification.Damage)
		}
		return all[i], nil
	}
	for _, b := range NewestFirst(all) {
		if !b.Damaged() && (c.Before.IsZero() || !b.Time.After(c.Before)) {
			return b, nil
		}
	}
	if c.Before.IsZero() {
		return Backup{}, fmt.Errorf("there is no usable backup%s", among(all))
	}
	return Backup{}, fmt.Errorf("there is no usable backup from before %s%s", c.Before.UTC().Format(time.RFC3339), among(all))
}

// among names the newest of the backups that there are.
func among(all []Backup) string {
	const most = 5
	var names []string
	for _, b := range NewestFirst(all)[:min(most, len(all))] {
		names = append(names, fmt.Sprintf("%s (%s)", b.Name, b.Time.UTC().Format(time.RFC3339)))
	}
	if len(names) == 0 {
		return "; the lineage has none"
	}
	return fmt.Sprintf("; the newest of %d are %s", len(all), strings.Join(names, ", "))
}
