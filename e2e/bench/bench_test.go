package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// settings are how much is measured.
type settings struct {
	// sizes are the numbers of objects, ascending multiples of 100.
	sizes []int
	// rounds is how often each contestant's turn comes in each operation.
	rounds int
	// window is how long a turn is.
	window time.Duration
	// profiles is the folder for the servers' profiles, or empty.
	profiles string
}

// readSettings reads the settings from the environment.
func readSettings(t *testing.T) settings {
	t.Helper()
	get := func(name, otherwise string) string {
		if value := os.Getenv(name); value != "" {
			return value
		}
		return otherwise
	}
	s := settings{profiles: os.Getenv("BENCH_PROFILES")}
	for field := range strings.SplitSeq(get("BENCH_OBJECTS", "1000,10000"), ",") {
		size, err := strconv.Atoi(field)
		if err != nil || size < 100 || size%100 != 0 || len(s.sizes) > 0 && size <= s.sizes[len(s.sizes)-1] {
			t.Fatalf("BENCH_OBJECTS: %q: give numbers of objects in ascending order, each a multiple of 100, such as 1000,10000", field)
		}
		s.sizes = append(s.sizes, size)
	}
	var err error
	if s.rounds, err = strconv.Atoi(get("BENCH_ROUNDS", "5")); err != nil || s.rounds < 1 {
		t.Fatal("BENCH_ROUNDS: give a number of rounds, such as 5")
	}
	if s.window, err = time.ParseDuration(get("BENCH_WINDOW", "400ms")); err != nil || s.window <= 0 {
		t.Fatal("BENCH_WINDOW: give the length of a turn, such as 400ms")
	}
	return s
}

// TestBench measures every operation at every size. The contestants take
// turns, so that the noise of the computer hits all alike.
func TestBench(t *testing.T) {
	start, s := time.Now(), readSettings(t)
	contestants := startContestants(t)
	r := &report{contestants: contestants}
	fmt.Print(r.header(s))
	populated := 0
	for _, size := range s.sizes {
		for _, c := range contestants {
			if c.populates {
				c.populate(t, populated, size)
			}
		}
		populated = size
		for _, c := range contestants {
			c.check(t, size)
		}
		for _, op := range operations {
			for _, c := range contestants {
				op.run(t, c, size, s.window/5) // caches and connections get warm
				if s.profiles != "" {
					op.profile(t, c, size, s.profiles)
				}
			}
			rows := make([][]sample, len(contestants))
			for round := range s.rounds {
				for i := range contestants {
					i = (i + round) % len(contestants)
					rows[i] = append(rows[i], op.run(t, contestants[i], size, s.window))
				}
			}
			fmt.Print(r.add(size, op.name, rows))
		}
	}
	fmt.Printf("%sAll took %s.\n", r.aims(), time.Since(start).Round(time.Second))
}
