package etcd

import (
	"testing"
	"time"
)

// TestRevisions observes an etcd every minute and asks for a revision that is old enough.
func TestRevisions(t *testing.T) {
	var r Revisions
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	for i := range 60 {
		r.Note("fleet", Seen{int64(100 + i), at(i)})
		r.Note("fleet", Seen{int64(100 + i), at(i).Add(time.Second)})
		r.Note("fleet", Seen{0, at(i)})
		want := Seen{}
		if i >= 5 {
			want = Seen{int64(100 + i - 5), at(i - 5)}
		}
		if got := r.Old("fleet", at(i)); got != want {
			t.Errorf("after %d minutes: %+v", i, got)
		}
		if len(r.of["fleet"]) > 7 {
			t.Fatalf("it remembers %d", len(r.of["fleet"]))
		}
	}
	if got := r.Old("fleet", at(600)); got.Revision != 159 {
		t.Errorf("after a night without a word: %+v", got)
	}
	r.Note("fleet", Seen{50, at(601)})
	if got := r.Old("fleet", at(602)); got.Revision != 0 {
		t.Errorf("of one that was restored: %+v", got)
	}
	r.Note("fleet", Seen{60, at(300)})
	if got := r.Old("fleet", at(603)); got.Revision != 60 {
		t.Errorf("after the clock was set back: %+v", got)
	}
	if r.Note("fleet", Seen{70, at(300).Add(time.Second)}); r.Newest("fleet") != 159 {
		t.Errorf("the newest is %d", r.Newest("fleet"))
	}
	r.Forget("fleet")
	if got := r.Old("fleet", at(900)); got.Revision != 0 || r.Newest("fleet") != 0 {
		t.Errorf("of one that is gone: %+v", got)
	}
}
