package layout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// a backup of the tests below is written as NAME@HOURS, hours after the start, followed by
// "+" when it is verified and by "-" when it is damaged. Each has a higher revision than
// the one before.
func backups(t *testing.T, written string) []Backup {
	t.Helper()
	var out []Backup
	for i, word := range strings.Fields(written) {
		name, at, _ := strings.Cut(word, "@")
		var hours float64
		if _, err := fmt.Sscanf(strings.TrimRight(at, "+-"), "%g", &hours); err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		b := Backup{Manifest: NewManifest(lineage(t, "", "one"), backup(name, int64(i+1), start.Add(time.Duration(hours*float64(time.Hour)))))}
		switch {
		case strings.HasSuffix(at, "+"):
			b.Verification = &Verification{SHA256: sum, Time: b.Time}
		case strings.HasSuffix(at, "-"):
			b.Verification = &Verification{SHA256: sum, Time: b.Time, Damage: "its keys differ"}
		}
		out = append(out, b)
	}
	return out
}

func names(all []Backup) string {
	var out []string
	for _, b := range all {
		out = append(out, b.Name)
	}
	return strings.Join(out, " ")
}

func TestObsolete(t *testing.T) {
	const hour = time.Hour
	for _, test := range []struct {
		reason string
		keep   Retention
		have   string
		now    time.Duration // after the start
		goes   string
	}{
		{"nothing is there", Retention{3, hour}, "", 0, ""},
		{"no retention keeps all", Retention{}, "a@0+ b@1+ c@2+", 1000 * hour, ""},
		{"negative is none", Retention{-1, -1}, "a@0+ b@1+ c@2+", 1000 * hour, ""},
		{"as many as are kept", Retention{3, 0}, "a@0+ b@1+ c@2+", 3 * hour, ""},
		{"one too many", Retention{2, 0}, "a@0+ b@1+ c@2+", 3 * hour, "a"},
		{"the oldest goes first", Retention{1, 0}, "a@0+ b@1+ c@2+", 3 * hour, "a b"},
		{"younger than the time", Retention{0, 2 * hour}, "a@0+ b@1+ c@2+", 2 * hour, ""},
		{"older than the time", Retention{0, 1 * hour}, "a@0+ b@1+ c@2+", 2 * hour, "a"},
		{"exactly as old", Retention{0, 2 * hour}, "a@0+ c@2+", 2 * hour, ""},
		{"either is enough to stay", Retention{2, 1 * hour}, "a@0+ b@1+ c@1.5+ d@2+", 2 * hour, "a"},
		{"many, all of them young", Retention{1, 5 * hour}, "a@0+ b@1+ c@2+", 2 * hour, ""},

		{"the last one, however old", Retention{0, hour}, "a@0+", 1000 * hour, ""},
		{"backups have stopped: nothing goes any more", Retention{0, 2 * hour}, "a@0+ b@1+ c@2+", 1000 * hour, ""},
		{"this clock is far behind", Retention{0, hour}, "a@0+ b@1+ c@2+", -1000 * hour, ""},
		{"the clock was ahead when the newest was taken", Retention{0, 2 * hour}, "a@0+ b@1+ c@9000+", 2 * hour, ""},
		{"the clock was ahead before, and went back", Retention{2, 0}, "a@0+ b@9000+ c@2+ d@3+", 3 * hour, "a b"},
		{"taken at the same moment", Retention{1, 0}, "a@0+ b@0+", hour, "a"},

		{"never verified, but asked for nothing else", Retention{2, 0}, "a@0 b@1 c@2", 3 * hour, "a"},
		{"the newest verified one stays behind newer ones", Retention{2, 0}, "a@0+ b@1+ c@2 d@3 e@4", 5 * hour, "a c"},
		{"the newest one stays before it is verified", Retention{1, 0}, "a@0+ b@1", 2 * hour, ""},
		{"damaged ones do not count", Retention{2, 0}, "a@0+ b@1- c@2+ d@3-", 4 * hour, "b d"},
		{"damaged ones stay as long as others", Retention{1, 2 * hour}, "a@0- b@1- c@3+ d@4-", 4 * hour, "a"},
		{"the last good one stays when all after it are damaged", Retention{1, hour}, "a@0+ b@1- c@2- d@3-", 1000 * hour, ""},
		{"only damaged ones", Retention{1, hour}, "a@0- b@1- c@2-", 1000 * hour, ""},
	} {
		if got := names(test.keep.Obsolete(backups(t, test.have), start.Add(test.now))); got != test.goes {
			t.Errorf("%s: %q goes, want %q", test.reason, got, test.goes)
		}
	}
}

// TestRetentionOverYears takes a backup every six hours of the local time, in which days
// have 23 to 25 hours, for three years, and prunes after each one.
func TestRetentionOverYears(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	keep := Retention{KeepLast: 3, KeepFor: 30 * 24 * time.Hour}
	var have []Backup
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
	for i := range 4 * 3 * 365 {
		now := time.Date(2026, 1, 1, 6*i, 0, 0, 0, zone)
		b := Backup{Manifest: NewManifest(lineage(t, "", "one"), backup(fmt.Sprint("b", i), int64(i+1), now.UTC()))}
		if i%5 == 0 {
			b.Verification = &Verification{SHA256: sum, Time: now}
		}
		have = append(have, b)
		goes := keep.Obsolete(have, now)
		have = slices.DeleteFunc(have, func(b Backup) bool {
			return slices.ContainsFunc(goes, func(gone Backup) bool { return gone.Name == b.Name })
		})
		oldest := now.Sub(have[0].Time)
		if full := now.Sub(begin) > keep.KeepFor; oldest > keep.KeepFor || full && oldest <= keep.KeepFor-7*time.Hour {
			t.Fatalf("at %s the oldest of %d is %s old", now, len(have), oldest)
		}
		if have[len(have)-1].Name != b.Name {
			t.Fatalf("at %s the newest is gone", now)
		}
	}
}

// TestObsoleteHolds checks what always holds on lineages by chance.
func TestObsoleteHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in each run
	for range 3000 {
		var have []string
		for i := range random.IntN(8) {
			have = append(have, fmt.Sprintf("b%d@%d%s", i, random.IntN(20), []string{"", "+", "-"}[random.IntN(3)]))
		}
		all := backups(t, strings.Join(have, " "))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		keep := Retention{random.IntN(4), time.Duration(random.IntN(20)) * time.Hour}
		now := start.Add(time.Duration(random.IntN(60)-20) * time.Hour)
		gone := map[string]bool{}
		for _, b := range keep.Obsolete(all, now) {
			gone[b.Name] = true
		}
		good, verified, left := "", "", 0
		for _, b := range NewestFirst(all) {
			if !b.Damaged() && good == "" {
				good = b.Name
			}
			if b.Verified() && verified == "" {
				verified = b.Name
			}
			if !b.Damaged() && !gone[b.Name] {
				left++
			}
			if age := now.Sub(b.Time); gone[b.Name] && keep.KeepFor > 0 && age <= keep.KeepFor {
				t.Fatalf("%v, %+v at %s: %s goes after %s", have, keep, now, b.Name, age)
			}
		}
		usable := len(slices.DeleteFunc(slices.Clone(all), Backup.Damaged))
		if gone[good] || gone[verified] || left < min(keep.KeepLast, usable) {
			t.Fatalf("%v, %+v at %s: %v goes", have, keep, now, gone)
		}
	}
}

func TestChoice(t *testing.T) {
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	for _, test := range []struct {
		reason string
		have   string
		choice Choice
		want   string
		says   string
	}{
		{"the newest", "a@0+ b@1 c@2-", Choice{}, "b", ""},
		{"the newest before a time", "a@0+ b@1+ c@2+", Choice{Before: at(1)}, "b", ""},
		{"by revision, not by clock", "a@9+ b@1+", Choice{}, "b", ""},
		{"by name", "a@0+ b@1+", Choice{Name: "a"}, "a", ""},
		{"by name, damaged", "a@0- b@1+", Choice{Name: "a"}, "", "backup a is damaged (verified at 2026-03-01T03:00:00Z): its keys differ"},
		{"by a name that is not there", "a@0+ b@1+", Choice{Name: "x"}, "", "there is no backup x; the newest of 2 are b (2026-03-01T04:00:00Z), a (2026-03-01T03:00:00Z)"},
		{"none", "", Choice{}, "", "there is no usable backup; the lineage has none"},
		{"none that is usable", "a@0-", Choice{}, "", "there is no usable backup; the newest of 1 are a"},
		{"none that is old enough", "a@3+", Choice{Before: at(2)}, "", "from before 2026-03-01T05:00:00Z; the newest of 1 are a"},
	} {
		got, err := test.choice.Of(backups(t, test.have))
		if got.Name != test.want || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %q, %v", test.reason, got.Name, err)
		}
	}
}
