package body

import (
	"bytes"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkProtobuf counts the fields of an object in the envelope that Kubernetes puts it in.
// What kind a field is, only its schema says: so whatever can be a message is taken for one,
// but for plain text, in which each entry of a list would take eleven bytes.
func checkProtobuf(data []byte) *field.Error {
	values := 0
	return checkMessage(bytes.TrimPrefix(data, []byte("k8s\x00")), 1, &values)
}

// checkMessage counts the fields of a message, and all that is below.
func checkMessage(message []byte, depth int, values *int) *field.Error {
	if depth > MaxDepth {
		return tooDeep(all)
	}
	var entries [64]int // by the number of the field; ours are below
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return nil
		}
		place := &entries[int(number)%len(entries)]
		*place, *values = *place+1, *values+1
		switch {
		case *place > MaxEntries:
			return tooMany(all, *place, MaxEntries)
		case *values > MaxValues:
			return tooMany(all, *values, MaxValues)
		case kind == protowire.BytesType:
			content, _ := protowire.ConsumeBytes(message[n:])
			if !isMessage(content) {
				break
			}
			if fault := checkMessage(content, depth+1, values); fault != nil {
				return fault
			}
		}
		message = message[n+size:]
	}
	return nil
}

// isMessage reports whether something is a sequence of fields from its beginning to its end,
// and not text.
func isMessage(data []byte) bool {
	if !bytes.ContainsFunc(data, isControl) {
		return false
	}
	for len(data) > 0 {
		_, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// isControl reports whether text has no such character. Bytes that are no text are such, too.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == utf8.RuneError
}
