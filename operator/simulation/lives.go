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
	first, count := number(t, "SEED", 1), number(t, "SEEDS", 1)
	if os.Getenv("SEED") != "" {
		count = 1
	}
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { live(t, seed, life) })
	}
}

// number is that of a variable of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	out, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is not a number", name, text)
	}
	return out
}
