// Package schedule has times that recur, as people write them: in the five fields of cron
// and a time zone.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images that the operator runs in have no time zones

	"github.com/robfig/cron/v3"
)

// Schedule is times that recur. The zero value has none.
type Schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// fields are those of a schedule.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Parse reads a schedule in the five fields of cron, and the time zone that it is in, UTC
// when that is empty. The schema of the host may have let through what is wrong with them.
// An error begins with the name of the field, schedule or timeZone, and says what to write.
func Parse(text, timeZone string) (Schedule, error) {
	// The empty name is UTC. "Local" is where the operator runs, which says nothing.
	zone, err := time.LoadLocation(timeZone)
	if err == nil && strings.EqualFold(timeZone, "local") {
		err = errors.New("unknown time zone")
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("timeZone %q is not known (%w): write a name of the IANA database, such as Europe/Berlin", timeZone, err)
	}
	if strings.Contains(text, "=") {
		// The parser would take it for a time zone, and panics on some.
		return Schedule{}, fmt.Errorf("schedule %q has a time zone or a variable in it: write five fields, such as 0 2 * * sat, and the time zone as timeZone", text)
	}
	times, err := fields.Parse(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q is not valid (%w): write minute, hour, day of the month, month and day of the week, such as 0 2 * * sat", text, err)
	}
	if times.Next(time.Unix(0, 0).In(zone)).IsZero() {
		return Schedule{}, fmt.Errorf("schedule %q names a day that there never is: write another one, such as 0 2 * * sat", text)
	}
	return Schedule{times, zone}, nil
}

// Next returns the first time after a given one, in the time zone; zero when there is none
// within five years.
func (s Schedule) Next(after time.Time) time.Time {
	if s.times == nil {
		return time.Time{}
	}
	return s.times.Next(after.In(s.zone))
}

// day is how long most days are.
const day = 24 * time.Hour

// Last returns the last time that is not after a given one; zero when there is none within
// five years.
func (s Schedule) Last(until time.Time) time.Time {
	// From ever further back, so that no more than a few times of any schedule are passed.
	for _, back := range []time.Duration{time.Hour, day, 8 * day, 32 * day, 366 * day, 5 * 366 * day} {
		var last time.Time
		for next := s.Next(until.Add(-back)); !next.IsZero() && !next.After(until); next = s.Next(next) {
			last = next
		}
		if !last.IsZero() {
			return last
		}
	}
	return time.Time{}
}
