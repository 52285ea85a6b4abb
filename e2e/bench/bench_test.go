package bench

import (
	"cmp"
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
	// connections are how many requests are under way at a time, ascending.
	connections []int
	// rounds is how often each contestant's turn comes in each operation.
	rounds int
	// window is how long a turn is.
	window time.Duration
	// fsync has each etcd write to the disk before it answers.
	fsync bool
	// available has the registry behind the aggregator highly available.
	available bool
	// profiles is the folder for the servers' profiles, or empty.
	profiles string
}

// readSettings reads the settings from the environment.
func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{
		sizes: numbers(t, "BENCH_OBJECTS", "10000", 100), connections: numbers(t, "BENCH_CONNECTIONS", "4,16", 1),
		fsync: os.Getenv("BENCH_FSYNC") != "", available: os.Getenv("BENCH_HA") != "", profiles: os.Getenv("BENCH_PROFILES"),
	}
	var err error
	if s.rounds, err = strconv.Atoi(setting("BENCH_ROUNDS", "5")); err != nil || s.rounds < 1 {
		t.Fatal("BENCH_ROUNDS: give a number of rounds, such as 5")
	}
	if s.window, err = time.ParseDuration(setting("BENCH_WINDOW", "400ms")); err != nil || s.window <= 0 {
		t.Fatal("BENCH_WINDOW: give the length of a turn, such as 400ms")
	}
	return s
}

func setting(name, otherwise string) string { return cmp.Or(os.Getenv(name), otherwise) }

// numbers reads a list of ascending multiples of a unit.
func numbers(t *testing.T, name, otherwise string, unit int) (out []int) {
	t.Helper()
	for field := range strings.SplitSeq(setting(name, otherwise), ",") {
		number, err := strconv.Atoi(field)
		if err != nil || number < unit || number%unit != 0 || len(out) > 0 && number <= out[len(out)-1] {
			t.Fatalf("%s: %q: give numbers in ascending order, each a multiple of %d, such as %s", name, field, unit, otherwise)
		}
		out = append(out, number)
	}
	return out
}

// etcdFlags are what each etcd is started with besides.
func (s settings) etcdFlags() []string {
	if s.fsync {
		return []string{"--unsafe-no-fsync=false"}
	}
	return nil
}

// TestBench measures every operation at every size, and those that are for it with every
// number of connections. The contestants take turns, so that the noise of the computer
// hits all alike.
func TestBench(t *testing.T) {
	start, s := time.Now(), readSettings(t)
	contestants := startContestants(t, s)
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
			if c.way == ceiling {
				c.learn(t, contestants[r.index(aggregated)], size)
				continue
			}
			c.check(t, size)
		}
		for _, op := range operations {
			for _, connections := range op.at(s.connections) {
				fmt.Print(r.add(size, connections, op.name, op.measure(t, contestants, size, connections, s)))
			}
		}
	}
	fmt.Printf("%s%sAll took %s.\n", r.budget(), r.aims(), time.Since(start).Round(time.Second))
}

// measure returns the turns of each contestant; one that takes no part has none.
func (op operation) measure(t *testing.T, contestants []*contestant, size, connections int, s settings) [][]sample {
	t.Helper()
	var taking []int
	for i, c := range contestants {
		if !op.takes(c) {
			continue
		}
		taking = append(taking, i)
		c = c.with(connections)
		op.run(t, c, size, s.window/5) // caches and connections get warm
		if s.profiles != "" {
			op.profile(t, c, size, s.profiles)
		}
	}
	rows := make([][]sample, len(contestants))
	for round := range s.rounds {
		for i := range taking {
			i = taking[(i+round)%len(taking)]
			rows[i] = append(rows[i], op.run(t, contestants[i].with(connections), size, s.window))
		}
	}
	return rows
}
