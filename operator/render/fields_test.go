package render

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	podSpec   = "/spec/template/spec"
	container = podSpec + "/containers/0"
)

// TestFields says what each field of the spec changes. The spec of each case is
// merged into that of registry; the paths begin with kind and name, and null is
// what must not be there.
func TestFields(t *testing.T) {
	for reason, test := range fields {
		in := input(t, merged(t, test.spec))
		in.Addresses = test.addresses
		result := rendered(t, in)
		for path, text := range test.want {
			var want any
			if err := yaml.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if got := at(t, result, path); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %s, want %s", reason, path, inline(t, got), inline(t, want))
			}
		}
	}
}

// merged returns registry with further fields in its spec.
func merged(t *testing.T, spec string) string {
	t.Helper()
	var object, more map[string]any
	for text, into := range map[string]*map[string]any{registry: &object, spec: &more} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	for key, value := range more {
		object["spec"].(map[string]any)[key] = value
	}
	return inline(t, object)
}

func inline(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// at returns the value at a path such as Service/fleet-server/spec/type, nil when
// there is none. "~1" is a slash in a key, and "--flag" that flag's value in a
// list of arguments.
func at(t *testing.T, result *Result, path string) any {
	t.Helper()
	parts := strings.Split(path, "/")
	object := find(result, parts[0], parts[1])
	if object == nil {
		return nil
	}
	var tree any
	if err := json.Unmarshal([]byte(inline(t, object.Object)), &tree); err != nil {
		t.Fatal(err)
	}
	for _, part := range parts[2:] {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[strings.ReplaceAll(part, "~1", "/")]
		case []any:
			tree = element(node, part)
		default:
			return nil
		}
	}
	return tree
}

func element(list []any, name string) any {
	for i, value := range list {
		if strconv.Itoa(i) == name {
			return value
		}
		if text, is := value.(string); is && strings.HasPrefix(text, name+"=") {
			return strings.TrimPrefix(text, name+"=")
		}
	}
	return nil
}
