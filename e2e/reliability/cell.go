package reliability

import (
	"fmt"
	"slices"
	"strings"
)

// cell is an operation under a fault, on an etcd of some members.
type cell struct {
	operation operation
	fault     fault
	members   int32
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %d members", c.operation.name, c.fault.name, c.members)
}

// id is the cell's name in tests and files.
func (c cell) id() string {
	return strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(fmt.Sprintf("%s %s %d", c.operation.name, c.fault.name, c.members))
}

// tolerant reports whether requests may fail: where so many members are down at a time that
// the others are no majority.
func (c cell) tolerant() bool {
	return c.operation.down+c.fault.down > int(c.operation.least(c.members)-1)/2
}

// registry names the registry that the cell is for: cells of one name can share one.
func (c cell) registry() string {
	switch {
	case c.operation.name == upgrade.name:
		return c.id() // there is no return to the release before
	case c.operation.independent:
		return fmt.Sprintf("%d members, independent", c.members)
	}
	return fmt.Sprintf("%d members", c.members)
}

// core are the cells of "make test", in the order in which one registry goes through them.
func core() []cell {
	return []cell{{upgrade, containerKilled, 3}, {steady, nodeStopped, 3}}
}

// cells are all there are, the most telling first: each operation under one fault, then
// under the next one.
func cells() (all []cell) {
	operations := []operation{scaleUp, replacement, etcdRotation, upgrade, scaleDown, defragmentation, clientRotation, servingRotation, steady}
	for _, members := range []int32{3, 1, 5} {
		faults := []fault{operatorKilled, podKilled}
		if members == 3 {
			faults = []fault{containerKilled, operatorKilled, volumeEmptied, diskFull, nodeCutOff, fileCorrupted, claimDeleted, nodeStopped, podKilled}
		}
		for _, f := range faults {
			for _, o := range operations {
				// What clients of an independent registry connect to is a node of theirs.
				if o.possible(members) && (!o.independent || !f.node) {
					all = append(all, cell{o, f, members})
				}
			}
		}
	}
	return all
}

// unmeasured are those of some cells that have no result.
func unmeasured(all []cell, measured map[string]result) []cell {
	return slices.DeleteFunc(slices.Clone(all), func(c cell) bool {
		_, is := measured[c.id()]
		return is
	})
}

// selection is the value of E2E_CELLS that selects the cell.
func (c cell) selection() string { return fmt.Sprintf("%s/%d", c.fault.name, c.members) }

// selections are the values of E2E_CELLS. Each selects some cells of TestCells, and all
// together select all, each once.
func selections() (out []string) {
	for _, c := range cells() {
		if s := c.selection(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// groups are cells that share a registry, in the order of cells.
func groups(all []cell) (out [][]cell) {
	for _, c := range all {
		i := slices.IndexFunc(out, func(group []cell) bool { return group[0].registry() == c.registry() })
		if i < 0 {
			out = append(out, []cell{c})
			continue
		}
		out[i] = append(out[i], c)
	}
	return out
}
