package body

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// frame is a list or map that a scan is in.
type frame struct {
	list    bool
	entries int
	key     []byte // of the entry, in a map
	valued  bool   // the key has been read
}

// checkJSON counts by brackets, commas and what is in quotes. All entries together may be so
// many at most.
func checkJSON(data []byte, most int) *field.Error {
	var stack [MaxDepth]frame
	depth, values := 0, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '{', '[':
			if depth == MaxDepth {
				return tooDeep(path(stack[:depth]))
			}
			stack[depth] = frame{list: c == '[', entries: 1}
			depth++
			values++
		case '}', ']':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				continue
			}
			top := &stack[depth-1]
			top.entries, top.valued = top.entries+1, false
			values++
			if top.entries > MaxEntries {
				return tooMany(path(stack[:depth-1]), top.entries, MaxEntries)
			}
		case '"':
			end := endOfText(data, i+1)
			if depth > 0 && !stack[depth-1].list && !stack[depth-1].valued {
				stack[depth-1].key, stack[depth-1].valued = data[i+1:end], true
			}
			i = end
		}
		if values > most {
			return tooMany(all, values, most)
		}
	}
	return nil
}

// endOfText returns where the quotation mark is that ends a text, or the end of the data.
func endOfText(data []byte, i int) int {
	for ; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i, len(data))
}

// path names the entries that lead into a list or map.
func path(stack []frame) string {
	var out strings.Builder
	for _, f := range stack {
		switch {
		case f.list:
			fmt.Fprintf(&out, "[%d]", f.entries-1)
		case out.Len() > 0:
			out.WriteString("." + named(f.key))
		default:
			out.WriteString(named(f.key))
		}
	}
	if out.Len() == 0 {
		return all
	}
	return out.String()
}

// named returns a key as an error may repeat it: as a field is named.
func named(key []byte) string {
	const longest = 63
	isOther := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if len(key) == 0 || len(key) > longest || strings.ContainsFunc(string(key), isOther) {
		return "<a key>"
	}
	return string(key)
}
