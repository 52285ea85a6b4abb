package etcd

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Newest is the newest revision that an etcd is known to have been at.
type Newest struct {
	Revision int64 `json:"revision"`
	// Time is when that was recorded.
	Time time.Time `json:"time"`
}

// newestEvery is how far apart the revisions are that are recorded: what an etcd has written
// since is known only as long as the operator runs.
const newestEvery = 5 * time.Minute

// WentBack is an etcd that was found at an older revision than it was known to have been at, as
// after volumes were set back to older copies: what it had acknowledged in between is not in it.
type WentBack struct {
	// ID is what a person approves.
	ID string `json:"id"`
	// From is the newest revision that was known, and To the one that etcd was found at.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Time is when that was noticed.
	Time time.Time `json:"time"`
}

// Newest returns the newest revision at which members completed a linearizable read, zero when
// none did: nothing that was acknowledged before is newer.
func (s State) Newest() (revision int64) {
	for _, m := range s.serving() {
		revision = max(revision, m.Revision)
	}
	return revision
}

// Follow returns the record of an etcd that is at a revision, and whether anything is new in it.
// Remembered is the newest revision that is known beside the record, zero for none. That etcd
// went back stays recorded until a person has decided, however far it gets meanwhile.
func (r *Record) Follow(revision, remembered int64, now time.Time) (*Record, bool) {
	if revision == 0 || r.ClusterID == "" || r.WentBack != nil || r.Restored.Pending() || r.Recovered.Pending() {
		return r, false
	}
	known, out, now := max(r.Newest.Revision, remembered), *r, now.UTC().Truncate(time.Second)
	switch {
	case revision < known:
		out.Newest = Newest{known, now}
		out.WentBack = &WentBack{ID: r.ClusterID + "-" + string(uuid.NewUUID())[:8], From: known, To: revision, Time: now}
	case r.Newest.Revision == 0, revision > r.Newest.Revision && now.Sub(r.Newest.Time).Abs() >= newestEvery:
		out.Newest = Newest{revision, now}
	default:
		return r, false
	}
	return &out, true
}

// Accept returns the record of an etcd that went back and continues with what it has, which ends
// with a revision.
func (r Record) Accept(revision int64, now time.Time) *Record {
	r.WentBack, r.Newest = nil, Newest{revision, now.UTC().Truncate(time.Second)}
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
