package body

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// separators are what separates entries in YAML, with all that its parser takes for the end
// of a line.
var separators = [][]byte{
	[]byte("- "), []byte("-\t"), []byte(","), []byte("["), []byte("{"),
	[]byte("\n"), []byte("\r"), []byte("\u0085"), []byte("\u2028"), []byte("\u2029"),
}

// checkYAML counts whatever can separate entries, be it in a text or not. There are never
// fewer of these than of the entries, since aliases are refused.
func checkYAML(data []byte) *field.Error {
	if !utf8.Valid(data) { // the parser would also read UTF-16, in which nothing is counted
		return field.Invalid(field.NewPath(all), "", "YAML must be in UTF-8")
	}
	n := -bytes.Count(data, []byte("\r\n"))
	for _, separator := range separators {
		n += bytes.Count(data, separator)
	}
	if n > MaxSeparators {
		fault := tooMany(all, n, MaxSeparators)
		fault.Detail = fmt.Sprintf("YAML may have at most %d line breaks, commas, brackets and dashes; send the same as JSON", MaxSeparators)
		return fault
	}
	if hasAlias(data) {
		return field.Forbidden(field.NewPath(all), "anchors and aliases of YAML, such as &x and *x, are not supported: repeat the value, or send the same as JSON")
	}
	return nil
}

// hasAlias reports whether a name has both an anchor and an alias.
func hasAlias(data []byte) bool {
	anchors := map[string]bool{}
	for _, name := range marked(data, '&') {
		anchors[name] = true
	}
	if len(anchors) == 0 {
		return false
	}
	for _, name := range marked(data, '*') {
		if anchors[name] {
			return true
		}
	}
	return false
}

// marked returns the names that follow a mark.
func marked(data []byte, mark byte) (names []string) {
	for {
		i := bytes.IndexByte(data, mark)
		if i < 0 {
			return names
		}
		data = data[i+1:]
		end := bytes.IndexFunc(data, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
		if end < 0 {
			end = len(data)
		}
		if end > 0 {
			names = append(names, string(data[:end]))
		}
	}
}
