package simulation

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// lives lives as many lives as SEEDS says, by default one, each by another seed. SEED has one
// of them lived alone.
func lives(t *testing.T, life func(*world)) {
	t.Helper()
	first, count := uint64(1), uint64(1)
	for name, into := range map[string]*uint64{"SEEDS": &count, "SEED": &first} {
		if text := os.Getenv(name); text != "" {
			number, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s=%s is not a number", name, text)
			}
			*into = number
		}
	}
	if os.Getenv("SEED") != "" {
		count = 1
	}
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { live(t, seed, life) })
	}
}
