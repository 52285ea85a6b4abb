// Package body counts what is in the body of a request before anything decodes it. Two or
// three bytes of a body become an object of a hundred in memory, that objects are merged,
// converted, compared and validated, and some of it takes the square of their number: so
// what is too much is refused by a scan that allocates nothing.
package body

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxBytes bounds a body.
	MaxBytes = 1 << 20
	// MaxCopied bounds what the copies in a JSON patch add to an object, in bytes.
	MaxCopied = 256 << 10
	// MaxEntries bounds the entries of one list or map. It is twice as many as
	// v1alpha1 may show of the endpoints of v1beta1.
	MaxEntries = 2048
	// MaxValues bounds all entries of all lists and maps together. The largest spec has a
	// quarter of them, the largest status half. To tell what a write has changed, and who has,
	// takes kilobytes for each.
	MaxValues = 32 << 10
	// MaxDepth bounds how deep lists and maps are nested.
	MaxDepth = 64
	// MaxSeparators bounds what separates entries where they are read as YAML, whose parser
	// takes kilobytes for each.
	MaxSeparators = 16 << 10
)

// Check returns what is too much in a body of a media type, or nil. A body that is not well
// formed is for its decoder to refuse.
func Check(data []byte, mediaType string) *field.Error {
	// As the handlers of patches do: one with parameters that are not well formed is served.
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	switch {
	case mediaType == runtime.ContentTypeProtobuf:
		return checkProtobuf(data)
	case strings.Contains(mediaType, "cbor"): // an object or an apply
		return checkCBOR(data)
	case !strings.HasSuffix(mediaType, "yaml"):
		return checkJSON(data, MaxValues)
	case json.Valid(data): // whatever it is, as clients send an apply
		return checkJSON(data, MaxSeparators)
	}
	return checkYAML(data)
}

// tooMany is the fault of a place in a body.
func tooMany(at string, n, most int) *field.Error {
	fault := field.TooMany(nil, n, most)
	fault.Field = at
	return fault
}

// tooDeep is the fault of a body whose parts are nested too deep.
func tooDeep(at string) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooMany, Field: at, BadValue: MaxDepth + 1, Detail: "lists and maps are nested too deep"}
}

// all stands for the place of what is counted in all of a body.
const all = "<body>"
