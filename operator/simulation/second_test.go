package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// sample is how many cells TestSecondFailure draws where SEEDS does not ask for all.
const sample = 1

// most is how long a way out may take.
const most = time.Hour

// cell is an accident at a step of an undertaking.
type cell struct {
	undertaking
	accident
	step int
}

func (c cell) String() string {
	return fmt.Sprintf("%s/%s/step %d", c.undertaking.name, c.accident.name, c.step)
}

// found are the cells in which there was no way out once.
var found = []string{
	"a recovery with a member/the data of a member is lost/step 3", // the copy is lost, and nothing said what to do
	"a registry from a backup/a claim is deleted/step 5",           // no member could join before all was ready once
	"another CA of one member/a claim is deleted/step 3",           // members that lead out of it waited for the rotation
}

// TestSecondFailure has something else fail at a step of what is under way, whenever that enters a
// phase: the registry comes to rest automatically, or says what it waits for, and it comes to
// rest after a person has done that. With SEEDS, everything fails at all steps of everything;
// otherwise, some of that is drawn by SEED.
func TestSecondFailure(t *testing.T) {
	cells, seed := table(), number(t, "SEED", 1)
	if os.Getenv("SEEDS") == "" {
		cells = drawn(cells, seed)
	}
	for _, c := range cells {
		t.Run(c.String(), func(t *testing.T) {
			t.Logf("again: SEED=%d SEEDS=1 go test ./operator/simulation -run '^%s$'", seed, strings.ReplaceAll(t.Name(), "/", "$/^"))
			live(t, seed, c.live)
		})
	}
}

// table has all cells.
func table() (out []cell) {
	for _, u := range undertakings {
		for _, a := range accidents {
			for step := range u.steps {
				out = append(out, cell{u, a, step + 1})
			}
		}
	}
	return out
}

// drawn returns some of the cells by a seed, and those in which something was found.
func drawn(cells []cell, seed uint64) (out []cell) {
	for _, c := range cells {
		if slices.Contains(found, c.String()) {
			out = append(out, c)
		}
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for _, i := range random.Perm(len(cells))[:sample] {
		out = append(out, cells[i])
	}
	return out
}

// live lives the life of a cell.
func (c cell) live(w *world) {
	c.entered(w)
	w.note("and now %s", c.accident.name)
	if over := c.happens(w); over != nil {
		w.pass(away)
		w.note("that is over")
		over()
	}
	c.completes(w)
}

// entered begins the undertaking, and has it enter the phase of the cell.
func (c cell) entered(w *world) {
	w.version = cmp.Or(c.from, w.version)
	if c.independent {
		w.mode = string(operatorv1alpha1.ModeIndependent)
	}
	w.installed(c.members)
	if !c.bare {
		w.stores("0 12 * * *")
		w.backsUp("first")
		w.until("there is a backup", 10*time.Minute, func() bool { return w.backedUp("first") && w.ready() })
	}
	c.begins(w)
	c.enters(w)
}

// completes expects that what was begun becomes complete.
func (c cell) completes(w *world) {
	w.t.Helper()
	for end := time.Now().Add(most); !c.complete(w); w.step() {
		w.decides()
		if time.Now().After(end) {
			w.fails("there is no way out: %s", w.conditions())
		}
	}
	w.pass(time.Minute)
	if !c.complete(w) {
		w.fails("it does not stay ready: %s", w.conditions())
	}
}

// complete reports whether what was begun is complete, and the registry, if there is to be one,
// ready with all of its members: how it is now, which its status may not say yet.
func (c cell) complete(w *world) bool {
	r := w.registry()
	deleted := slices.ContainsFunc(w.etcd.last().members, func(m member) bool { return w.terminating(m.name) })
	return (r == nil || w.ready() && have(int(r.Spec.Etcd.Replicas))(w) && w.shrinks == 0 && !deleted) && c.is(w)
}

// enters lets time pass until what was begun enters the phase of the cell.
func (c cell) enters(w *world) {
	w.t.Helper()
	phase := (*world).phase
	if c.by != nil {
		phase = c.by
	}
	before, end := phase(w), time.Now().Add(most)
	for entered := 0; ; w.step() {
		if now := phase(w); now != before && now != "" {
			if entered++; entered == c.step {
				w.note("it enters %s", now)
				return
			}
			before = now
		}
		w.decides()
		if time.Now().After(end) {
			w.fails("only %d phases are entered: %s", entered, w.conditions())
		}
	}
}

// phase is that of the operation or of the recovery that is under way, and when it began, empty
// where none is.
func (w *world) phase() string {
	status := w.registry().Status
	out := ""
	if o := status.Operation; o != nil {
		out = fmt.Sprint(o.Type, " ", o.Phase, o.PhaseStartedTime)
	}
	if lost := status.Recovery; lost != nil {
		out += fmt.Sprint(" recovery ", lost.Phase, lost.ID)
	}
	if b := w.host.objects[id{backupKind, key.namespace, "second"}]; b != nil {
		phase, _, _ := unstructured.NestedString(b.Object, "status", "phase")
		out += phase
	}
	return out
}
