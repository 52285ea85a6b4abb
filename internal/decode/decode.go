// Package decode decodes custom resources, each alone, as typed clients do. Of these a cluster
// checks no more than what a schema says, which may be another release's than the Go type: any
// object may be one that the type can't decode, and a typed list with it could not be read at all.
package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A FieldError says what of an object can't be decoded.
type FieldError struct {
	// Field is the path of the first field that can't be, such as
	// .spec.backup.store.s3.caBundle.
	Field string
	why   error
}

// Error says what the decoder says.
func (e *FieldError) Error() string { return e.why.Error() }

// Unwrap returns what the decoder says.
func (e *FieldError) Unwrap() error { return e.why }

// Into fills an object of a Go type, which is given by a pointer, from a tree of JSON. The error
// of one that can't be decoded is a *FieldError.
func Into(tree map[string]any, into any) error {
	fails := func(value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		return utiljson.Unmarshal(text, reflect.New(reflect.TypeOf(into).Elem()).Interface())
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	if err := utiljson.Unmarshal(text, into); err != nil {
		return &FieldError{Field: culprit(tree, fails), why: err}
	}
	return nil
}

// culprit returns the path of the first part of a value with which alone decoding fails.
func culprit(value any, fails func(any) error) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			within := func(inner any) error { return fails(map[string]any{key: inner}) }
			if within(v[key]) != nil {
				return "." + key + culprit(v[key], within)
			}
		}
	case []any:
		for i, item := range v {
			within := func(inner any) error { return fails([]any{inner}) }
			if within(item) != nil {
				return fmt.Sprintf("[%d]", i) + culprit(item, within)
			}
		}
	}
	return ""
}
