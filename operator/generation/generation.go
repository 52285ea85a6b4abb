// Package generation decides which keys of a registry's CAs are in use while one takes the
// place of another. A CA has generations, each with a key of its own; the number in
// spec.tls.rotation is that of the newest one. All here is pure.
package generation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// First is the generation of a CA that was never rotated.
const First = 1

// InUse are the generations of one CA that are in use, and so rendered. The zero value is
// that of a CA which was never rotated.
type InUse struct {
	// Signing is the generation that signs; 0 is the first one, too.
	Signing int32
	// Also is another one that is trusted: the next one until it signs, and then the
	// previous one until it is dropped. It is 0 where there is none.
	Also int32
}

// separator is between the two generations in a record.
const separator = ","

// String returns the generations as they are recorded, the one that signs first: "2" or
// "2,1".
func (u InUse) String() string {
	if u.Also == 0 {
		return strconv.Itoa(int(u.Signing))
	}
	return strconv.Itoa(int(u.Signing)) + separator + strconv.Itoa(int(u.Also))
}

// Parse reads what String returns.
func Parse(text string) (InUse, error) {
	signing, also, two := strings.Cut(text, separator)
	numbers := []string{signing}
	if two {
		numbers = append(numbers, also)
	}
	var read []int32
	for _, number := range numbers {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < First {
			return InUse{}, fmt.Errorf("%q is not the generation of a CA that signs, as 2, nor that and the one of another that is trusted, as 2%s1", text, separator)
		}
		read = append(read, int32(n))
	}
	u := InUse{Signing: read[0]}
	if two {
		u.Also = read[1]
	}
	if u.Also == u.Signing {
		return InUse{}, fmt.Errorf("%q names the same generation of a CA twice", text)
	}
	return u, nil
}

// All returns the generations in use, the oldest first.
func (u InUse) All() []int32 {
	signing := max(u.Signing, First)
	switch {
	case u.Also == 0:
		return []int32{signing}
	case u.Also < signing:
		return []int32{u.Also, signing}
	}
	return []int32{signing, u.Also}
}

// Next reports whether a generation that is trusted is to sign, and does not yet.
func (u InUse) Next() bool { return u.Also > u.Signing }

// Previous reports whether a generation is trusted that no longer signs.
func (u InUse) Previous() bool { return u.Also != 0 && u.Also < u.Signing }

// Words says what the generations are in use for, for a person.
func (u InUse) Words() string {
	switch {
	case u.Next():
		return fmt.Sprintf("%d signs, and %d is trusted, too, and signs next", u.Signing, u.Also)
	case u.Previous():
		return fmt.Sprintf("%d signs, and %d is still trusted", u.Signing, u.Also)
	}
	return fmt.Sprintf("%d signs, and no other one is trusted", max(u.Signing, First))
}

// Sole returns the generation that signs alone, as it was before a next one was made.
func (u InUse) Sole() InUse { return InUse{Signing: u.Signing} }

// Further returns the one of two records of the same CA that is further on the way of Toward.
// What was dropped by one of them is not brought back by the other.
func (u InUse) Further(other InUse) InUse {
	if slices.Compare(u.position(), other.position()) < 0 {
		return other
	}
	return u
}

// position orders the generations in use by the way of Toward.
func (u InUse) position() []int32 {
	stage := int32(1)
	switch {
	case u.Next():
		stage = 2
	case u.Previous():
		stage = 0
	}
	return []int32{u.Signing, stage, u.Also}
}

// Desired is what a spec asks for, of one CA.
type Desired struct {
	// Generation is the newest generation that there is to be.
	Generation int32
	// Replaceable is the newest generation that may be replaced as the one that signs, and
	// Dropped the newest that is no longer to be trusted once it does not sign.
	Replaceable, Dropped int32
}

// Instead returns the generations to be in use where the key of the next one got lost, which
// must not be used again: one that is desired beyond it takes its place. It returns false as
// long as none is.
func (u InUse) Instead(d Desired) (InUse, bool) {
	if !u.Next() || d.Generation <= u.Also {
		return u, false
	}
	return InUse{u.Signing, d.Generation}, true
}

// Toward returns the generations to be in use next on the way to what is desired, a step
// of three: the next one is trusted beside the one that signs, takes its place, and is the
// only one. It returns false where there is nothing to do, or what is desired does not
// permit more. A desired generation below the one that signs changes nothing.
func (u InUse) Toward(d Desired) (InUse, bool) {
	switch {
	case u.Also == 0 && d.Generation > u.Signing:
		return InUse{u.Signing, d.Generation}, true
	case u.Next() && u.Signing <= d.Replaceable:
		return InUse{u.Also, u.Signing}, true
	case u.Previous() && u.Also <= d.Dropped:
		return InUse{Signing: u.Signing}, true
	}
	return u, false
}
