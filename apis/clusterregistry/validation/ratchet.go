package validation

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// added returns the faults that check finds in an object and not in its older
// state, which is nil for a new object. What is too large may stay as large or
// become smaller: so an object that a limit was not made for can be brought below
// it step by step.
func added[T any](object, old *T, check func(*T) field.ErrorList) field.ErrorList {
	faults := check(object)
	if len(faults) == 0 || old == nil {
		return faults
	}
	known := map[string][]int{} // the sizes of each fault, in order; 0 where size means nothing
	for _, fault := range check(old) {
		what, size := measure(fault)
		known[what] = append(known[what], size)
	}
	for _, sizes := range known {
		slices.Sort(sizes)
	}
	return slices.DeleteFunc(faults, func(fault *field.Error) bool {
		what, size := measure(fault)
		at, _ := slices.BinarySearch(known[what], size)
		if at == len(known[what]) {
			return false
		}
		known[what] = slices.Delete(known[what], at, at+1)
		return true
	})
}

// measure splits a fault into what is wrong, wherever in a list it is, and by how much.
func measure(fault *field.Error) (string, int) {
	size, ok := fault.BadValue.(int)
	switch {
	case ok && (fault.Type == field.ErrorTypeTooLong || fault.Type == field.ErrorTypeTooMany):
		return place.ReplaceAllString(fault.Field, "[]") + ": " + fault.Detail, size
	case fault.Type == field.ErrorTypeForbidden:
		// Its text never has the value; the fault carries something else to compare.
		digest, _ := fault.BadValue.(string)
		return place.ReplaceAllString(fault.Error(), "[]") + digest, 0
	}
	return place.ReplaceAllString(fault.Error(), "[]"), 0
}

// place is where in a list something is, which may change.
var place = regexp.MustCompile(`\[\d+\]`)
