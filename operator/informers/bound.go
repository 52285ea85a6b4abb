package informers

import (
	"reflect"
	"slices"
	"strings"
)

const (
	// longest is how much of a string is held. What is read whole is shorter: the message of a
	// container that has terminated, in which Jobs report, has 4,096 bytes at most, and that of
	// a backup's status a few more (backup.Enter).
	longest = 5 << 10
	// largest is about how much of an object is held: its strings, and the entries of its
	// lists and maps.
	largest = 32 << 10
)

// bounded returns as much of a text as is held.
func bounded(text string) string { return text[:min(len(text), longest)] }

// bound cuts what is held of an object. onlyRead leaves the fields that are read, and whoever
// may write these chooses how long they are: thousands of such objects must not be the end
// of the operator. What the operator and the host cluster write is below the limits: cut, a report
// would be none, and a status would be written again each time.
func bound(object any) {
	left := room(largest)
	left.fit(reflect.ValueOf(object))
}

// room is how many bytes may still be held.
type room int

// take returns as much of a text as there is room for.
func (r *room) take(text string) string {
	out := bounded(text[:max(0, min(len(text), int(*r)))])
	*r -= room(len(out))
	return out
}

// fit cuts a value to the room that is left.
func (r *room) fit(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.fit(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() { // times and quantities have others
				r.fit(field)
			}
		}
	case reflect.String:
		v.SetString(r.take(v.String()))
	case reflect.Slice:
		for i := range v.Len() {
			if *r -= room(v.Type().Elem().Size()); *r < 0 {
				v.SetLen(i)
				return
			}
			r.fit(v.Index(i))
		}
	case reflect.Map:
		r.fitMap(v)
	}
}

// fitMap cuts a map with keys that are strings: what stays of one that is too large is the
// same each time.
func (r *room) fitMap(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		*r -= room(key.Len()) + room(v.Type().Elem().Size())
		switch value := v.MapIndex(key); {
		case *r < 0:
			v.SetMapIndex(key, reflect.Value{})
		case value.Kind() == reflect.String:
			v.SetMapIndex(key, reflect.ValueOf(r.take(value.String())).Convert(value.Type()))
		}
	}
}
