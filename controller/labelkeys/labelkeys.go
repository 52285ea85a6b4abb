// Package labelkeys chooses which labels of an object are copied to another one, by their keys.
package labelkeys

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AllowList says which labels are copied. Its zero value allows none.
type AllowList struct {
	keys     map[string]bool
	prefixes []string
}

// Parse takes keys of labels, and all keys of a prefix as "example.com/*".
func Parse(texts []string) (AllowList, error) {
	list := AllowList{keys: map[string]bool{}}
	for _, text := range texts {
		prefix, all := strings.CutSuffix(text, "/*")
		key := text
		if all {
			key = prefix + "/x"
		}
		if faults := validation.IsQualifiedName(key); len(faults) > 0 {
			return AllowList{}, fmt.Errorf("%q is neither the key of a label nor a prefix such as example.com/*: %s", text, faults[0])
		}
		if all {
			list.prefixes = append(list.prefixes, prefix+"/")
		} else {
			list.keys[text] = true
		}
	}
	return list, nil
}

// Allows reports whether a label is copied.
func (l AllowList) Allows(key string) bool {
	if l.keys[key] {
		return true
	}
	for _, prefix := range l.prefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
