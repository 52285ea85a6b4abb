package etcd

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Newest is how far an etcd is known to have been.
type Newest struct {
	Position
	// Time is when that was recorded.
	Time time.Time `json:"time"`
}

// newestEvery is how far apart the revisions are that are recorded. What an etcd has written
// since, an operator knows that runs; it records that when it is told to end.
const newestEvery = 5 * time.Minute

// WentBack is an etcd that was found at an older revision than it was known to have been at, as
// after volumes were set back to older copies: what it had acknowledged in between is not in it.
type WentBack struct {
	// ID is what a person approves.
	ID string `json:"id"`
	// From is the newest revision that was known, and To the one that etcd was found at.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Passed is true where etcd had got further than From when that was noticed. To is the
	// newest revision that is still in it for certain then.
	Passed bool `json:"passed,omitempty"`
	// Time is when that was noticed.
	Time time.Time `json:"time"`
}

// String says from where to where.
func (b WentBack) String() string {
	if b.Passed {
		return fmt.Sprintf("etcd went back from revision %d to one of %d or later, and has got further since", b.From, b.To)
	}
	return fmt.Sprintf("etcd went back from revision %d to %d", b.From, b.To)
}

// Newest returns how far etcd is by the members that completed a linearizable read, the zero
// value when none did: nothing that was acknowledged before is newer.
func (s State) Newest() (p Position) {
	for _, m := range s.serving() {
		p = p.further(m.Position).further(Position{Revision: m.Revision})
	}
	return p
}

// Acknowledged returns how far an etcd without a mark is by linearizable reads that were completed,
// the zero value when none was: what a member says of itself may lag behind that.
func (s State) Acknowledged() (p Position) {
	for _, m := range s.serving() {
		p = p.further(m.Position)
	}
	p.Mark = 0
	return p
}

// Follow returns the record of an etcd at a position, and whether anything is new in it: it went
// back, or clients have written and the last record is old. Remembered is the newest revision
// that is known beside the record, zero for none. That etcd went back stays recorded until a
// person has decided, however far it gets meanwhile.
func (r *Record) Follow(seen Position, remembered int64, now time.Time) (*Record, bool) {
	if seen.Revision == 0 || r.ClusterID == "" || r.WentBack != nil || r.Restored.Pending() || r.Recovered.Pending() {
		return r, false
	}
	known, out, now := max(r.Newest.Revision, remembered), *r, now.UTC().Truncate(time.Second)
	switch {
	case seen.Revision < known, seen.Mark < r.Newest.Mark:
		out.Newest = Newest{r.Newest.further(Position{Revision: known}), now}
		out.WentBack = &WentBack{ID: r.ClusterID + "-" + string(uuid.NewUUID())[:8], From: known, To: seen.Revision, Time: now}
		if seen.Revision >= known {
			out.WentBack.To, out.WentBack.Passed = max(seen.Mark, firstRevision), true
		}
	case r.Newest.Revision == 0, seen.written() > r.Newest.written() && now.Sub(r.Newest.Time).Abs() >= newestEvery:
		out.Newest = Newest{seen, now}
	default:
		return r, false
	}
	return &out, true
}

// firstRevision is that of an etcd that has nothing.
const firstRevision = 1

// Remember returns the record with the newest revision that is known beside it, and whether that
// is news.
func (r *Record) Remember(newest int64, now time.Time) (*Record, bool) {
	if newest <= r.Newest.Revision || r.ClusterID == "" || r.WentBack != nil || r.Restored.Pending() || r.Recovered.Pending() {
		return r, false
	}
	out := *r
	// Which of these revisions were upkeep is not known: the next one who asks etcd records that.
	upkeep := r.Newest.Upkeep + newest - r.Newest.Revision
	out.Newest = Newest{Position{newest, r.Newest.Mark, upkeep}, now.UTC().Truncate(time.Second)}
	return &out, true
}

// Accept returns the record of an etcd that went back and continues with what it has.
func (r Record) Accept(has Position, now time.Time) *Record {
	r.WentBack, r.Newest = nil, Newest{has, now.UTC().Truncate(time.Second)}
	return &r
}

// parseNewest reads what is recorded of an etcd's revisions.
func (r *Record) parseNewest(data map[string]string) error {
	for key, into := range map[string]any{keyNewest: &r.Newest, keyWentBack: &r.WentBack} {
		if data[key] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data[key]), into); err != nil {
			return fmt.Errorf("%s is damaged (%w): bring back what it was before it was changed; without it, it is not noticed that etcd went back before now", key, err)
		}
	}
	return nil
}
