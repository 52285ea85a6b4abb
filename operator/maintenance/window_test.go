package maintenance

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

func window(schedule string, duration time.Duration, zone string) Window {
	return New(&operatorv1alpha1.MaintenanceWindow{Schedule: schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: zone})
}

// TestOpen asks windows at instants, among them those at which clocks change: in Berlin from
// 02:00 to 03:00 on 2030-03-31, and from 03:00 back to 02:00 on 2030-10-27.
func TestOpen(t *testing.T) {
	nightly := window("0 2 * * *", time.Hour, "")
	midnight := window("30 23 * * sat", 2*time.Hour, "")
	berlin, skipped := window("0 3 * * *", time.Hour, "Europe/Berlin"), window("30 2 * * *", time.Hour, "Europe/Berlin")
	for _, test := range []struct {
		reason, now string
		window      Window
		open        bool
		next        string
	}{
		{"before", "2030-01-02T01:59:59Z", nightly, false, "2030-01-02T02:00:00Z"},
		{"as it opens", "2030-01-02T02:00:00Z", nightly, true, "2030-01-03T02:00:00Z"},
		{"in it", "2030-01-02T02:59:59Z", nightly, true, "2030-01-03T02:00:00Z"},
		{"as it closes", "2030-01-02T03:00:00Z", nightly, false, "2030-01-03T02:00:00Z"},
		{"asked in another time zone", "2030-01-02T12:30:00+10:00", nightly, true, "2030-01-03T02:00:00Z"},
		{"over midnight, before it", "2030-01-05T23:45:00Z", midnight, true, "2030-01-12T23:30:00Z"},
		{"over midnight, on Sunday", "2030-01-06T01:29:59Z", midnight, true, "2030-01-12T23:30:00Z"},
		{"over midnight, closed on Sunday", "2030-01-06T01:30:00Z", midnight, false, "2030-01-12T23:30:00Z"},
		{"over midnight, on another day", "2030-01-08T00:15:00Z", midnight, false, "2030-01-12T23:30:00Z"},
		{"in winter", "2030-01-02T02:30:00Z", berlin, true, "2030-01-03T03:00:00+01:00"},
		{"in summer", "2030-07-02T01:30:00Z", berlin, true, "2030-07-03T03:00:00+02:00"},
		{"in summer, as if it were winter", "2030-07-02T02:30:00Z", berlin, false, "2030-07-03T03:00:00+02:00"},
		{"on the day that is shorter", "2030-03-31T01:00:00Z", berlin, true, "2030-04-01T03:00:00+02:00"},
		{"the day before, of what is skipped", "2030-03-30T12:00:00Z", skipped, false, "2030-04-01T02:30:00+02:00"},
		{"what is skipped", "2030-03-31T01:30:00Z", skipped, false, "2030-04-01T02:30:00+02:00"},
		{"what is repeated, first", "2030-10-27T00:35:00Z", skipped, true, "2030-10-27T02:30:00+01:00"},
		{"what is repeated, again", "2030-10-27T02:25:00Z", skipped, true, "2030-10-28T02:30:00+01:00"},
		{"after what is repeated", "2030-10-27T02:30:00Z", skipped, false, "2030-10-28T02:30:00+01:00"},
		{"longer than the time between two", "2030-01-02T17:00:00Z", window("0 2 * * *", 25*time.Hour, ""), true, "2030-01-03T02:00:00Z"},
		{"as long as the time between two", "2030-01-02T02:00:00Z", window("0 2 * * *", 24*time.Hour, ""), true, "2030-01-03T02:00:00Z"},
		{"past the schema, as long as can be", "2030-01-02T17:00:00Z", window("0 2 * * *", 1<<63-1, ""), true, "2030-01-03T02:00:00Z"},
		{"a leap day", "2030-01-02T17:00:00Z", window("0 0 29 2 *", time.Hour, ""), false, "2032-02-29T00:00:00Z"},
		{"a leap day that is far", "2096-03-01T00:00:00Z", window("0 0 29 2 *", time.Hour, ""), false, ""},
		{"none", "2030-01-02T02:30:00Z", New(nil), false, ""},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		if err := test.window.Err(); err != nil {
			t.Errorf("%s: %s", test.reason, err)
		}
		if open := test.window.Open(now); open != test.open {
			t.Errorf("%s: open %t", test.reason, open)
		}
		next := test.window.Next(now)
		if got := next.Format(time.RFC3339); got != test.next && (test.next != "" || !next.IsZero()) {
			t.Errorf("%s: opens next at %s, not %s", test.reason, got, test.next)
		}
	}
}

// TestInvalid is about what the schema of the host can't refuse.
func TestInvalid(t *testing.T) {
	for _, test := range []struct {
		schedule string
		duration time.Duration
		zone     string
		says     string
	}{
		{"0 2 * * *", time.Hour, "Europe/Atlantis", `spec.etcd.maintenanceWindow.timeZone "Europe/Atlantis" is not known`},
		{"0 2 * * *", time.Hour, "../../etc/passwd", "is not known"},
		{"0 2 * * *", time.Hour, "Local", "is not known"},
		{"0 2 * * *", time.Hour, "lOCAL", "is not known"},
		{"0 2 * * *", 0, "", "duration is 0s: write how long the window is open"},
		{"0 2 * * *", -time.Hour, "", "duration is -1h0m0s"},
		{"", time.Hour, "", `spec.etcd.maintenanceWindow.schedule "" is not valid`},
		{"0 2 * *", time.Hour, "", "is not valid"},
		{"0 0 2 * * *", time.Hour, "", "is not valid"},
		{"61 2 * * *", time.Hour, "", "is not valid"},
		{"0 5-2 * * *", time.Hour, "", "is not valid"},
		{"0 2 * * foo", time.Hour, "", "is not valid"},
		{"0 2 * * 7", time.Hour, "", "is not valid"},
		{"*/0 2 * * *", time.Hour, "", "is not valid"},
		{"*/99999999999999999999 2 * * *", time.Hour, "", "is not valid"},
		{"@daily", time.Hour, "", "is not valid"},
		{"TZ=", time.Hour, "", "has a time zone or a variable in it"},
		{"CRON_TZ=UTC", time.Hour, "", "has a time zone or a variable in it"},
		{"TZ=UTC 0 2 * * *", time.Hour, "", "has a time zone or a variable in it"},
		{"0 0 30 2 *", time.Hour, "", "names a day that there never is"},
		{strings.Repeat("1,", 1<<16) + " * * * *", time.Hour, "", ""},
	} {
		w := window(test.schedule, test.duration, test.zone)
		if test.says == "" {
			continue // it did not crash
		}
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q for %s in %q: %v", test.schedule, test.duration, test.zone, err)
		}
		if now := time.Date(2030, 1, 2, 2, 30, 0, 0, time.UTC); !w.Given() || w.Open(now) || !w.Next(now).IsZero() {
			t.Errorf("%q for %s in %q opens", test.schedule, test.duration, test.zone)
		}
	}
}

// FuzzSchedule has the parser of schedules not crash the operator.
func FuzzSchedule(f *testing.F) {
	for _, schedule := range []string{"0 2 * * sat", "TZ=", "*/5 1-3,7/2 ? JAN-dec 0", "@every 1h", "0 0 31 2 *"} {
		f.Add(schedule)
	}
	now := time.Date(2030, 1, 2, 2, 30, 0, 0, time.UTC)
	f.Fuzz(func(_ *testing.T, schedule string) {
		w := window(schedule, time.Hour, "Europe/Berlin")
		_, _ = w.Open(now), w.Next(now)
	})
}
