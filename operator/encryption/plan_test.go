package encryption

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	a, b, c = theKey(providerAESCBC, "a"), theKey(providerSecretbox, "b"), theKey(providerAESGCM, "c")
	changed = Key{provider: providerAESCBC, name: "a", secret: b.secret}
)

// TestNext has each step in its place.
func TestNext(t *testing.T) {
	plain := Keys{Identity}
	for _, test := range []struct {
		reason string
		state  State
		kind   Kind
		keys   Keys
	}{
		{"nothing is encrypted, and nothing is to be", State{InUse: plain, Desired: plain, Loaded: true, Stored: map[string]int{"identity": 5}}, Done, nil},
		{"it is not known what is desired", State{InUse: Keys{a}, Loaded: true}, Done, nil},
		{"a registry that is new", State{InUse: plain, Desired: Keys{a}, Unstored: true}, Adopt, Keys{a}},
		{"switched on: read first", State{InUse: plain, Desired: Keys{a}, Loaded: true}, Add, Keys{Identity, a}},
		{"not all servers read with it", State{InUse: Keys{Identity, a}, Desired: Keys{a}}, Load, nil},
		{"all do: write", State{InUse: Keys{Identity, a}, Desired: Keys{a}, Loaded: true}, Activate, Keys{a, Identity}},
		{"one still writes without it", State{InUse: Keys{a, Identity}, Desired: Keys{a}}, Load, nil},
		{"what is stored is looked at when none does", State{InUse: Keys{a, Identity}, Desired: Keys{a}, Loaded: true}, Count, nil},
		{"it is rewritten", State{InUse: Keys{a, Identity}, Desired: Keys{a}, Loaded: true, Stored: map[string]int{"identity": 1, "aescbc/a": 9}}, Rewrite, nil},
		{"nothing is in clear any more", State{InUse: Keys{a, Identity}, Desired: Keys{a}, Loaded: true, Stored: map[string]int{"identity": 0, "aescbc/a": 10}}, Remove, Keys{a}},
		{"encrypted", State{InUse: Keys{a}, Desired: Keys{a}, Loaded: true, Stored: map[string]int{"aescbc/a": 10}}, Done, nil},
		{"a further key", State{InUse: Keys{a}, Desired: Keys{a, b}, Loaded: true}, Add, Keys{a, b}},
		{"a key in the place of another: that one stays for now", State{InUse: Keys{a}, Desired: Keys{b}, Loaded: true}, Add, Keys{a, b}},
		{"rewritten even where the former key is to stay", State{InUse: Keys{b, a}, Desired: Keys{b, a}, Loaded: true, Stored: map[string]int{"aescbc/a": 1}}, Rewrite, nil},
		{"switched off: nothing is added, it reads already", State{InUse: Keys{a, Identity}, Desired: plain, Loaded: true}, Activate, Keys{Identity, a}},
		{"switched off, and all is in clear", State{InUse: Keys{Identity, a}, Desired: plain, Loaded: true, Stored: map[string]int{"identity": 3}}, Remove, plain},
		{"the former key is in a backup", State{InUse: Keys{b, a}, Desired: Keys{b}, Needed: []string{"aescbc/a"}, Loaded: true, Stored: map[string]int{"secretbox/b": 3}}, Done, nil},
		{"one of two former keys is in a backup", State{InUse: Keys{b, a, c}, Desired: Keys{b}, Needed: []string{"aescbc/a", "aescbc/gone"}, Loaded: true, Stored: map[string]int{"secretbox/b": 3}}, Remove, Keys{b, a}},
		{"the former key is in no backup any more", State{InUse: Keys{b, a}, Desired: Keys{b}, Loaded: true, Stored: map[string]int{"secretbox/b": 3}}, Remove, Keys{b}},
		{"switched off, and the key is in a backup", State{InUse: Keys{Identity, a}, Desired: plain, Needed: []string{"aescbc/a"}, Loaded: true, Stored: map[string]int{"identity": 3}}, Done, nil},
		{"what was stored in clear needs no key in a backup", State{InUse: Keys{a, Identity}, Desired: Keys{a}, Needed: []string{"aescbc/a"}, Loaded: true, Stored: map[string]int{"aescbc/a": 3}}, Remove, Keys{a}},
		{"changed under its name", State{InUse: Keys{a}, Desired: Keys{changed}, Loaded: true}, Done, nil},
		{"something is stored under a key that no one has: it is not taken for rewritten", State{InUse: Keys{b, a}, Desired: Keys{b}, Loaded: true, Stored: map[string]int{"aescbc/lost": 1}}, Rewrite, nil},
	} {
		step := test.state.Next()
		if step.Kind != test.kind || !step.Keys.Equal(test.keys) {
			t.Errorf("%s: %s %v, want %s %v", test.reason, step.Kind, step.Keys, test.kind, test.keys)
		}
	}
	var conflict *Conflict
	if err := (State{InUse: Keys{a}, Desired: Keys{changed}}).Check(); !errors.As(err, &conflict) || !strings.Contains(err.Error(), "key aescbc/a is not the one") {
		t.Errorf("changed under its name: %v", err)
	}
	for _, test := range []struct {
		desired Keys
		kept    []string
	}{{Keys{b}, []string{"aescbc/a"}}, {Keys{b, a}, nil}, {nil, nil}} {
		if got := (State{InUse: Keys{b, a, Identity}, Desired: test.desired}).Kept(); !slices.Equal(got, test.kept) {
			t.Errorf("when %v are desired, %v are kept", test.desired, got)
		}
	}
}

// server is one in the simulation, with the keys that it was started with.
type server struct{ keys Keys }

// world is a registry in the simulation.
type world struct {
	inUse, desired Keys
	needed         []string
	servers        []server
	stored         []Key // each value, by the key that it is under
}

// loaded reports whether all servers have the keys in use.
func (w *world) loaded() bool {
	return !slices.ContainsFunc(w.servers, func(s server) bool { return !s.keys.Equal(w.inUse) })
}

// act does what the operator does in one reconcile. It remembers nothing from one to the next,
// as if it died after each. Where it is killed, nothing of the step is done, or of a rewrite a part.
func (w *world) act(r *rand.Rand) Kind {
	state := State{InUse: w.inUse, Desired: w.desired, Needed: w.needed, Loaded: w.loaded()}
	step := state.Next()
	if step.Kind == Count {
		state.Stored = map[string]int{}
		for _, key := range w.stored {
			state.Stored[key.ID()]++
		}
		step = state.Next()
	}
	switch step.Kind {
	case Add, Activate, Remove:
		if r.IntN(3) > 0 {
			w.inUse = step.Keys
		}
	case Rewrite:
		for i := range w.stored {
			if r.IntN(2) == 0 { // by any server
				w.stored[i] = w.servers[r.IntN(len(w.servers))].keys[0]
			}
		}
	}
	return step.Kind
}

// live has servers replaced and values written, in any order.
func (w *world) live(r *rand.Rand) {
	if r.IntN(2) == 0 {
		w.servers[r.IntN(len(w.servers))].keys = w.inUse
	}
	w.stored[r.IntN(len(w.stored))] = w.servers[r.IntN(len(w.servers))].keys[0]
}

// unreadable returns a value that a server has no key for.
func (w *world) unreadable() (Key, bool) {
	for _, s := range w.servers {
		for _, key := range w.stored {
			if !slices.Contains(s.keys, key) {
				return key, true
			}
		}
	}
	return Key{}, false
}

// TestSimulation changes what is desired at random, while servers are replaced one at a time,
// write, and the operator dies. At each moment each server can read all that is stored; and
// once no one changes anything any more, it becomes as desired, and nothing is stored under
// another key.
func TestSimulation(t *testing.T) {
	choices := []Keys{{Identity}, {a}, {a, Identity}, {Identity, a}, {b}, {b, a}, {a, b}, {c, b, a, Identity}, {c}, {changed}, nil}
	kinds := map[Kind]int{}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &world{inUse: Keys{Identity}, desired: Keys{Identity}, servers: make([]server, 1+r.IntN(4)), stored: make([]Key, 6)}
		for i := range w.servers {
			w.servers[i].keys = w.inUse
		}
		for i := range w.stored {
			w.stored[i] = Identity
		}
		look := func(step int) {
			if key, is := w.unreadable(); is {
				t.Fatalf("seed %d, step %d: a server has no key %s; in use are %v, servers have %v", seed, step, key, w.inUse, w.servers)
			}
		}
		for step := range 200 {
			if r.IntN(12) == 0 {
				w.desired = choices[r.IntN(len(choices))]
			}
			if r.IntN(20) == 0 { // a backup is taken, or the last one goes
				w.needed = [][]string{nil, w.inUse.IDs()}[r.IntN(2)]
			}
			if r.IntN(2) == 0 {
				had := w.inUse
				kinds[w.act(r)]++
				for _, id := range w.needed {
					_, before := had.Find(id)
					if _, is := w.inUse.Find(id); before && !is && id != "identity" {
						t.Fatalf("seed %d, step %d: %s is in a backup, and of %v there is left %v", seed, step, id, had, w.inUse)
					}
				}
			}
			look(step)
			w.live(r)
			look(step)
		}
		w.desired, w.needed = choices[r.IntN(9)], nil
		if (State{InUse: w.inUse, Desired: w.desired}).Check() != nil {
			continue // a person has to resolve it
		}
		for step := 0; w.act(r) != Done; step++ {
			if step > 2000 {
				t.Fatalf("seed %d: %v does not become %v; servers have %v, stored is %v", seed, w.inUse, w.desired, w.servers, w.stored)
			}
			look(step)
			w.live(r)
			look(step)
		}
		if w.inUse[0] != w.desired[0] || len(w.inUse) != len(w.desired) || len(without(w.desired, w.inUse)) > 0 {
			t.Fatalf("seed %d: %v is taken for %v", seed, w.inUse, w.desired)
		}
		for _, key := range w.stored {
			if key != w.desired[0] {
				t.Fatalf("seed %d: something is stored under %s, desired is %v", seed, key, w.desired)
			}
		}
	}
	for _, kind := range []Kind{Done, Load, Add, Activate, Rewrite, Remove} {
		if kinds[kind] == 0 {
			t.Errorf("nothing of the kind %s was done", kind)
		}
	}
}
