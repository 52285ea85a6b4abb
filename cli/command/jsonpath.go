package command

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// checkTemplate returns what is wrong with a template whatever it is applied to. The parser takes
// any word, and only its use fails: by then, a command has already written.
func checkTemplate(template string) error {
	parsed, err := jsonpath.Parse("output", template)
	if err != nil {
		return err
	}
	open := 0
	for _, node := range parsed.Root.Nodes {
		action, is := node.(*jsonpath.ListNode)
		if !is {
			continue
		}
		for _, node := range action.Nodes {
			name, is := node.(*jsonpath.IdentifierNode)
			switch {
			case !is:
				err = checkNode(node)
			case name.Name == "range":
				open++
			case name.Name == "end":
				open--
			default:
				err = checkNode(node)
			}
			if err != nil {
				return err
			}
			if open < 0 {
				return errors.New("{end} without a {range}")
			}
		}
	}
	if open > 0 {
		return errors.New("{range} without an {end}")
	}
	return nil
}

// checkNode finds words within an action, in which none means anything.
func checkNode(node jsonpath.Node) error {
	var below []jsonpath.Node
	switch node := node.(type) {
	case *jsonpath.IdentifierNode:
		return fmt.Errorf("%q is no keyword: the name of a field begins with a dot, and a text is in quotes", node.Name)
	case *jsonpath.ListNode:
		below = node.Nodes
	case *jsonpath.FilterNode:
		below = []jsonpath.Node{node.Left, node.Right}
	case *jsonpath.UnionNode:
		for _, list := range node.Nodes {
			below = append(below, list)
		}
	}
	for _, node := range below {
		if err := checkNode(node); err != nil {
			return err
		}
	}
	return nil
}

// selected returns what a template selects of a JSON document. Lines and columns are the
// template's own, which has them as \n and \t: those of values become spaces.
func selected(template string, content []byte) ([]byte, error) {
	// Whole numbers stay whole: a float of a million is printed with an exponent, and a filter
	// doesn't compare it with the numbers of the template.
	var object any
	if err := utiljson.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	if err := path.Execute(out, plainValues(object)); err != nil {
		return nil, err
	}
	return []byte(strings.Map(func(r rune) rune {
		if r != '\t' && unsafe(r) {
			return -1
		}
		return r
	}, out.String())), nil
}

// plainValues returns a decoded JSON document whose texts are Plain.
func plainValues(value any) any {
	switch value := value.(type) {
	case string:
		return Plain(value)
	case []any:
		for i := range value {
			value[i] = plainValues(value[i])
		}
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, below := range value {
			out[Plain(key)] = plainValues(below)
		}
		return out
	}
	return value
}
