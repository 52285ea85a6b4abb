package etcd

import (
	"testing"
	"time"

	"github.com/clusterregistry/operator/internal/contract"
)

// at is a position of an etcd of which just the revision matters.
func at(revision int64) Position { return Position{revision, 90, 2} }

// TestFollow records the newest revision seldom, and at once that etcd went back, which stays
// until a person has decided.
func TestFollow(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		reason           string
		change           func(*Record)
		seen             Position
		remembered       int64
		after            time.Duration
		newest, from, to int64 // what is recorded then
		written          bool
	}{
		{"nothing was recorded", func(r *Record) { r.Newest = Newest{} }, at(120), 0, 0, 120, 0, 0, true},
		{"nothing was written", nil, at(100), 100, time.Hour, 100, 0, 0, false},
		{"it grew a moment ago", nil, at(120), 110, time.Minute, 100, 0, 0, false},
		{"it grew, and minutes have passed", nil, at(120), 110, newestEvery, 120, 0, 0, true},
		{"it grew, and the clock was set back", nil, at(120), 0, -time.Hour, 120, 0, 0, true},
		{"it went back", nil, at(60), 0, time.Second, 100, 100, 60, true},
		{"it went back from what is only remembered", nil, at(110), 140, time.Second, 140, 140, 110, true},
		{"it went back, and no member serves", nil, at(0), 140, time.Second, 100, 0, 0, false},
		{"it went back before, and got further since", func(r *Record) { r.WentBack = &WentBack{ID: "c-1", From: 100, To: 60} }, at(200), 200, time.Hour, 100, 100, 60, false},
		{"it is being restored", func(r *Record) { r.Restored = &Restored{} }, at(60), 0, time.Second, 100, 0, 0, false},
		{"it is being recovered", func(r *Record) { r.Recovered = &Recovered{} }, at(60), 0, time.Second, 100, 0, 0, false},
		{"it has not formed", func(r *Record) { r.ClusterID = "" }, at(60), 0, time.Second, 100, 0, 0, false},
		{"the servers' compactor alone has written", nil, Position{103, 90, 5}, 103, time.Hour, 100, 0, 0, false},
		{"clients have written besides", nil, Position{103, 90, 4}, 103, time.Hour, 103, 0, 0, true},
		{"it went back, and got further since", nil, Position{900, 80, 2}, 0, time.Second, 100, 100, 80, true},
		{"it went back to before the first mark, and got further since", nil, Position{900, 0, 0}, 140, time.Second, 140, 140, 1, true},
		{"the mark was written, and recording it failed", nil, Position{101, 101, 3}, 0, time.Hour, 100, 0, 0, false},
	} {
		r := NewRecord(3, "ca", Identity{ClusterID: "c1", Members: map[string]string{"m0": "a0"}}, true)
		r.Newest = Newest{Position{100, 90, 2}, start}
		if test.change != nil {
			test.change(r)
		}
		got, written := r.Follow(test.seen, test.remembered, start.Add(test.after))
		var from, to int64
		if back := got.WentBack; back != nil {
			if from, to = back.From, back.To; back.ID == "" {
				t.Errorf("%s: it has no ID", test.reason)
			}
		}
		if written != test.written || got.Newest.Revision != test.newest || from != test.from || to != test.to {
			t.Errorf("%s: written: %t, %+v, %+v", test.reason, written, got.Newest, got.WentBack)
		}
		if again, err := ParseRecord(got.Data(r)); r.ClusterID != "" && got.Restored == nil && got.Recovered == nil && (err != nil || again.Newest != got.Newest || again.WentBack != nil && *again.WentBack != *got.WentBack || (again.WentBack == nil) != (got.WentBack == nil)) {
			t.Errorf("%s: it is read as %+v, %v", test.reason, again, err)
		}
	}
}

// TestAccept continues with what etcd has: it went back no more.
func TestAccept(t *testing.T) {
	now := time.Now()
	r := NewRecord(1, "ca", Identity{ClusterID: "c1", Members: map[string]string{"m0": "a0"}}, true)
	r.Newest, r.WentBack = Newest{Position{100, 90, 2}, now}, &WentBack{ID: "c1-1", From: 100, To: 60}
	has := Position{70, 50, 1}
	accepted := r.Accept(has, now)
	if got, written := accepted.Follow(has, 0, now); written || got.WentBack != nil || got.Newest.Position != has {
		t.Errorf("%+v", got)
	}
	if data := accepted.Data(r); data[keyWentBack] != "" || data[contract.RecordCluster] != "c1" {
		t.Errorf("%v", data)
	}
	r.Recovered = &Recovered{Member: "m0", Lineage: "l"}
	if recovered := RecoveryRecord(*r, 0, "https://m0:2380"); recovered.WentBack != nil || recovered.Newest != (Newest{}) {
		t.Errorf("another etcd begins, and it is said of it what went back: %+v", recovered)
	}
}

// TestDamagedNewest refuses a record whose revisions can't be read.
func TestDamagedNewest(t *testing.T) {
	for _, key := range []string{keyNewest, keyWentBack} {
		data := NewRecord(1, "ca", Identity{ClusterID: "c1"}, true).Data(nil)
		if data[key] = "{"; true {
			if _, err := ParseRecord(data); err == nil {
				t.Errorf("%s is taken for what it is not", key)
			}
		}
	}
}

// TestRemember records what an operator that ends knows beside the record, and leaves to the next
// one how much of it clients have written.
func TestRemember(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		reason  string
		change  func(*Record)
		newest  int64
		written bool
	}{
		{"etcd grew", nil, 120, true},
		{"it did not", nil, 100, false},
		{"nothing is known", nil, 0, false},
		{"it went back", func(r *Record) { r.WentBack = &WentBack{} }, 120, false},
		{"it is being restored", func(r *Record) { r.Restored = &Restored{} }, 120, false},
		{"it is being recovered", func(r *Record) { r.Recovered = &Recovered{} }, 120, false},
		{"it has not formed", func(r *Record) { r.ClusterID = "" }, 120, false},
	} {
		r := NewRecord(3, "ca", Identity{ClusterID: "c1", Members: map[string]string{"m0": "a0"}}, true)
		r.Newest = Newest{Position{100, 90, 2}, start}
		if test.change != nil {
			test.change(r)
		}
		got, written := r.Remember(test.newest, start.Add(time.Minute))
		if written != test.written || written && (got.Newest.Revision != test.newest || got.Newest.Mark != 90) || !written && got.Newest != r.Newest {
			t.Errorf("%s: written: %t, %+v", test.reason, written, got.Newest)
		}
		if !written {
			continue
		}
		if back, _ := got.Follow(Position{test.newest - 1, 90, 3}, 0, start.Add(2*time.Minute)); back.WentBack == nil {
			t.Errorf("%s: a write less, and nothing is noticed: %+v", test.reason, back.Newest)
		}
		if next, written := got.Follow(Position{test.newest, 90, 3}, 0, start.Add(time.Hour)); !written || next.Newest.Upkeep != 3 {
			t.Errorf("%s: clients have written, and recorded is %+v", test.reason, next.Newest)
		}
	}
}
