package schedule

import (
	"strings"
	"testing"
	"time"
)

// at returns a time that is written with its offset from UTC.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02 15:04 -0700", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestTimes goes through both changes of the clocks: a time that they skip is none, and
// one that they repeat is two.
func TestTimes(t *testing.T) {
	for _, test := range []struct {
		reason, schedule, zone, now, last, next string
	}{
		{"each hour", "0 * * * *", "", "2026-03-01 10:20 +0000", "2026-03-01 10:00 +0000", "2026-03-01 11:00 +0000"},
		{"at that very time", "0 * * * *", "", "2026-03-01 10:00 +0000", "2026-03-01 10:00 +0000", "2026-03-01 11:00 +0000"},
		{"each minute", "* * * * *", "", "2026-03-01 10:20 +0000", "2026-03-01 10:20 +0000", "2026-03-01 10:21 +0000"},
		{"each day, elsewhere", "30 3 * * *", "Asia/Kolkata", "2026-03-01 00:00 +0000", "2026-03-01 03:30 +0530", "2026-03-02 03:30 +0530"},
		{"once a week", "0 2 * * sat", "", "2026-03-06 10:00 +0000", "2026-02-28 02:00 +0000", "2026-03-07 02:00 +0000"},
		{"once a month", "0 2 1 * *", "", "2026-03-31 10:00 +0000", "2026-03-01 02:00 +0000", "2026-04-01 02:00 +0000"},
		{"on leap days", "0 2 29 2 *", "", "2026-03-31 10:00 +0000", "2024-02-29 02:00 +0000", "2028-02-29 02:00 +0000"},
		{"the clocks skip it", "30 2 * * *", "Europe/Berlin", "2026-03-29 12:00 +0200", "2026-03-28 02:30 +0100", "2026-03-30 02:30 +0200"},
		{"the clocks repeat it, before", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:00 +0200", "2026-10-24 02:30 +0200", "2026-10-25 02:30 +0200"},
		{"the clocks repeat it, between", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:45 +0200", "2026-10-25 02:30 +0200", "2026-10-25 02:30 +0100"},
		{"the clocks repeat it, after", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:45 +0100", "2026-10-25 02:30 +0100", "2026-10-26 02:30 +0100"},
		{"each hour in summer begins", "0 * * * *", "Europe/Berlin", "2026-03-29 03:10 +0200", "2026-03-29 03:00 +0200", "2026-03-29 04:00 +0200"},
	} {
		s, err := Parse(test.schedule, test.zone)
		if err != nil {
			t.Fatal(err)
		}
		now := at(t, test.now)
		if last, next := s.Last(now), s.Next(now); !last.Equal(at(t, test.last)) || !next.Equal(at(t, test.next)) {
			t.Errorf("%s: %s and %s, want %s and %s", test.reason, last, next, test.last, test.next)
		}
	}
	if s := (Schedule{}); !s.Next(time.Now()).IsZero() || !s.Last(time.Now()).IsZero() {
		t.Error("the zero value has times")
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ schedule, zone, says string }{
		{"0 2 * *", "", `schedule "0 2 * *" is not valid`},
		{"0 0 2 * * sat", "", "is not valid"},
		{"@daily", "", "is not valid"},
		{"TZ=UTC 0 2 * * *", "", "has a time zone or a variable in it"},
		{"0 2 30 2 *", "", "names a day that there never is"},
		{"0 2 * * *", "Europe/Atlantis", `timeZone "Europe/Atlantis" is not known`},
		{"0 2 * * *", "Local", "is not known"},
	} {
		if _, err := Parse(test.schedule, test.zone); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q in %q: %v, want %q", test.schedule, test.zone, err, test.says)
		}
	}
}
