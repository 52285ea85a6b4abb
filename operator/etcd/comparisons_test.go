package etcd

import (
	"errors"
	"testing"
	"time"
)

// TestComparisons bounds how often members scan their data: a definite answer counts for some
// minutes, one that was not to be had for less, and each for that etcd and that member alone.
func TestComparisons(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	of := Compared{Etcd: "team/fleet", Member: "m0", ID: "a"}
	for _, test := range []struct {
		reason string
		err    error
		then   Compared
		after  time.Duration
		again  bool
	}{
		{"in the next reconcile", nil, of, 3 * time.Second, false},
		{"just before the answer is too old", nil, of, comparedFor - time.Second, false},
		{"once it is too old", nil, of, comparedFor, true},
		{"others differ", &DataDiffers{"m1", "m2", 7}, of, comparedFor - time.Second, false},
		{"it is the same", &DataSame{"m0", 7}, of, comparedFor - time.Second, false},
		{"a member did not answer, a moment ago", errors.New("no answer"), of, failedFor - time.Second, false},
		{"a member did not answer", errors.New("no answer"), of, failedFor, true},
		{"the member did not answer, unlike the others", &NoAnswer{"m0", errors.New("no answer")}, of, failedFor, true},
		{"another member", nil, Compared{Etcd: "team/fleet", Member: "m1", ID: "b"}, time.Second, true},
		{"the one that took its place", nil, Compared{Etcd: "team/fleet", Member: "m0", ID: "c"}, time.Second, true},
		{"another etcd", nil, Compared{Etcd: "team/other", Member: "m0", ID: "a"}, time.Second, true},
		{"an alarm was raised since", nil, Compared{Etcd: "team/fleet", Member: "m0", ID: "a", Alarm: Alarm{Type: AlarmCorrupt, MemberID: "b"}}, time.Second, true},
		{"the clock went back", nil, of, -time.Hour, true},
	} {
		var c Comparisons
		asked := 0
		ask := func() error { asked++; return test.err }
		first := c.Outlier(of, start, ask)
		second := c.Outlier(test.then, start.Add(test.after), ask)
		if again := asked == 2; again != test.again || !errors.Is(first, test.err) || !errors.Is(second, test.err) {
			t.Errorf("%s: asked %d times: %v, %v", test.reason, asked, first, second)
		}
	}
}

// TestComparisonsForgotten has nothing be kept of what is not asked any more.
func TestComparisonsForgotten(t *testing.T) {
	var c Comparisons
	now, none := time.Now(), func() error { return nil }
	for i := range 100 {
		_ = c.Outlier(Compared{Etcd: "team/fleet", Member: "m0", ID: string(rune('a' + i))}, now.Add(time.Duration(i)*time.Hour), none)
	}
	if len(c.of) != 1 {
		t.Errorf("%d are kept", len(c.of))
	}
	c.Forget("team/other")
	if len(c.of) != 1 {
		t.Error("another etcd's is forgotten")
	}
	if c.Forget("team/fleet"); len(c.of) != 0 {
		t.Error("it is not forgotten")
	}
}
