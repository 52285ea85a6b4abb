package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// yaml returns values.yaml: each value with what it is about before it.
func (all values) yaml() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintln(&out, "# Written by \"make chart\" from hack/chart and the manifests.")
	section := ""
	for _, v := range all {
		group, name, nested := strings.Cut(v.path, ".")
		indent := ""
		switch {
		case !nested:
			name = group
		case group != section:
			fmt.Fprintf(&out, "\n%s:\n", group)
			fallthrough
		default:
			indent = "  "
		}
		if !nested {
			fmt.Fprintln(&out)
		}
		section = group
		content, err := yaml.Marshal(map[string]any{name: v.preset})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.path, err)
		}
		text := "# " + v.about + "\n" + string(content)
		for line := range strings.Lines(text) {
			out.WriteString(indent + line)
		}
	}
	return out.Bytes(), nil
}

// schema returns values.schema.json. Values that the chart does not have are refused, so
// that a name with a mistake in it is not ignored.
func (all values) schema() ([]byte, error) {
	closed := func() object { return object{"type": "object", "additionalProperties": false, "properties": object{}} }
	root := closed()
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart " + Name
	properties := root["properties"].(object)
	properties["global"] = object{"type": "object", "description": "What Helm hands to every chart that is a part of another one; not used."}
	for _, v := range all {
		in := properties
		group, name, nested := strings.Cut(v.path, ".")
		if !nested {
			name = group
		} else {
			if in[group] == nil {
				in[group] = closed()
			}
			in = in[group].(object)["properties"].(object)
		}
		property := object{"description": v.about, "default": v.preset}
		for key, value := range v.schema {
			property[key] = value
		}
		in[name] = property
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)
	return out.Bytes(), err
}
