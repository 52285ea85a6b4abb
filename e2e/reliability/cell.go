package reliability

import (
	"fmt"
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

// core are the cells of "make test", in the order in which one registry goes through them.
func core() []cell {
	return []cell{{upgrade, containerKilled, 3}, {steady, podKilled, 3}, {steady, volumeEmptied, 3}, {steady, nodeStopped, 3}}
}

// matrix are all cells of an etcd of some members.
func matrix(members int32) (cells []cell) {
	faults := []fault{operatorKilled, podKilled}
	if members == 3 {
		faults = append(faults, containerKilled, volumeEmptied, claimDeleted, fileCorrupted, nodeStopped, nodeCutOff)
	}
	for _, o := range []operation{upgrade, steady, defragmentation, servingRotation, replacement, scaleUp, scaleDown} {
		for _, f := range faults {
			if o.possible(members) {
				cells = append(cells, cell{o, f, members})
			}
		}
	}
	return cells
}
