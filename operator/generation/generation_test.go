package generation

import (
	"strings"
	"testing"
)

// TestParse reads what was written, and refuses all else: people can edit a record.
func TestParse(t *testing.T) {
	for _, u := range []InUse{{1, 0}, {2, 0}, {1, 2}, {2, 1}, {9999, 1}} {
		if got, err := Parse(u.String()); got != u || err != nil {
			t.Errorf("%s is read as %+v, %v", u, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "one", "1,", ",1", "1,0", "1,2,3", "1, 2", "99999999999", "2,2"} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

// TestToward is about each step of a rotation, and what holds it.
func TestToward(t *testing.T) {
	for _, test := range []struct {
		reason  string
		from    InUse
		desired Desired
		want    InUse
		changes bool
	}{
		{"nothing is asked for", InUse{1, 0}, Desired{1, 0, 0}, InUse{1, 0}, false},
		{"the number was raised", InUse{1, 0}, Desired{2, 1, 1}, InUse{1, 2}, true},
		{"it was raised by more than one", InUse{1, 0}, Desired{7, 6, 6}, InUse{1, 7}, true},
		{"the next one is to sign", InUse{1, 2}, Desired{2, 1, 1}, InUse{2, 1}, true},
		{"clients need the one that signs", InUse{1, 2}, Desired{2, 0, 0}, InUse{1, 2}, false},
		{"clients no longer do", InUse{1, 2}, Desired{2, 1, 1}, InUse{2, 1}, true},
		{"the previous one is dropped", InUse{2, 1}, Desired{2, 1, 1}, InUse{2, 0}, true},
		{"it was not dropped yet", InUse{2, 1}, Desired{2, 1, 0}, InUse{2, 1}, false},
		{"raised again before it was dropped: two at most", InUse{2, 1}, Desired{3, 2, 0}, InUse{2, 1}, false},
		{"raised again, and both dropped: one after the other", InUse{2, 1}, Desired{3, 2, 2}, InUse{2, 0}, true},
		{"raised again before the next one signs", InUse{1, 2}, Desired{3, 2, 2}, InUse{2, 1}, true},
		{"dropped long ago", InUse{3, 0}, Desired{3, 1, 1}, InUse{3, 0}, false},
		{"lowered past the schema", InUse{3, 0}, Desired{1, 0, 0}, InUse{3, 0}, false},
		{"lowered while two are trusted", InUse{3, 2}, Desired{1, 0, 0}, InUse{3, 2}, false},
	} {
		if got, changes := test.from.Toward(test.desired); got != test.want || changes != test.changes {
			t.Errorf("%s: from %s to %s, %v", test.reason, test.from, got, changes)
		}
	}
}

// TestTowardEnds goes from every state to every desire: it ends, trusts two at most, never
// has a generation sign that was not trusted before, and never returns to an older one.
func TestTowardEnds(t *testing.T) {
	for signing := int32(1); signing <= 4; signing++ {
		for also := int32(0); also <= 4; also++ {
			for n := range 5 * 5 * 5 {
				d := Desired{int32(n % 5), int32(n / 5 % 5), int32(n / 25)}
				if u := (InUse{signing, also}); also != signing {
					walk(t, u, d)
				}
			}
		}
	}
}

func walk(t *testing.T, u InUse, d Desired) {
	t.Helper()
	start := u
	for range 20 {
		next, changes := u.Toward(d)
		if !changes {
			if next != u {
				t.Errorf("from %s to %+v: %s changes without saying so", start, d, u)
			}
			return
		}
		if next.Signing < u.Signing || next.Signing != u.Signing && next.Signing != u.Also || next.Also == next.Signing {
			t.Errorf("from %s to %+v: %s follows %s", start, d, next, u)
		}
		u = next
	}
	t.Errorf("from %s to %+v: it does not end", start, d)
}

// TestAll lists the oldest first, whichever of them signs: what is published of them does
// not change with that.
func TestAll(t *testing.T) {
	for u, want := range map[InUse][]int32{{1, 0}: {1}, {1, 2}: {1, 2}, {2, 1}: {1, 2}} {
		got := u.All()
		if len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: %v", u, got)
		}
	}
}

// TestFurther takes of two records the one that is further, so that what was dropped stays so.
func TestFurther(t *testing.T) {
	way := []string{"1", "1,2", "1,3", "3,1", "3", "3,4", "4,3", "4"}
	for i, less := range way {
		for _, more := range way[i:] {
			a, errA := Parse(less)
			b, errB := Parse(more)
			if errA != nil || errB != nil || a.Further(b) != b || b.Further(a) != b {
				t.Errorf("%s and %s: %s, %s", less, more, a.Further(b), b.Further(a))
			}
		}
	}
	if (InUse{}).Further(InUse{Signing: 1}).Signing != 1 {
		t.Error("none is further than the first")
	}
}

// TestInstead has a next generation whose key is lost be replaced by a later one, and by no
// other key of the same number.
func TestInstead(t *testing.T) {
	for _, test := range []struct {
		from    InUse
		desired int32
		to      InUse
		due     bool
	}{
		{InUse{1, 2}, 2, InUse{1, 2}, false},
		{InUse{1, 2}, 3, InUse{1, 3}, true},
		{InUse{2, 1}, 3, InUse{2, 1}, false},
		{InUse{Signing: 1}, 3, InUse{Signing: 1}, false},
	} {
		if to, due := test.from.Instead(Desired{Generation: test.desired}); to != test.to || due != test.due {
			t.Errorf("%s to %d: %s, %t", test.from, test.desired, to, due)
		}
	}
}
