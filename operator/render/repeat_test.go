package render

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRenderRepeats looks for an order that maps leave to chance, which would
// write to the host without end.
func TestRenderRepeats(t *testing.T) {
	content := func(in Input) string {
		text, err := json.Marshal(rendered(t, in).Objects())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for variant, in := range variants(t) {
		in.Addresses = []string{"b.example", "a.example", "192.0.2.1"}
		first := content(in)
		for range 3 { // for each of dozens of variants
			builds = newMemory() // as that of another operator
			if again := content(in); again != first {
				t.Fatalf("%s: it was\n%s\nand is\n%s", variant, first, again)
			}
		}
		in.HostVersion, in.Trust.Serving = "1.36", []byte("another\n")
		if content(in) == first {
			t.Errorf("%s: it is the same with another host cluster and another CA", variant)
		}
	}
}

func TestSubstitute(t *testing.T) {
	values := map[string]string{"<name>": "fleet", "<ca>": "<name> is not looked at again"}
	tree := map[string]any{"a": "<name>-x-<name>", "b": []any{"<ca>", int64(1)}, "c": "1 < 2 > <A>"}
	if _, err := substitute(tree, values); err != nil {
		t.Fatal(err)
	}
	if b := tree["b"].([]any); tree["a"] != "fleet-x-fleet" || b[0] != "<name> is not looked at again" || tree["c"] != "1 < 2 > <A>" {
		t.Errorf("%v", tree)
	}
	for _, unknown := range []any{"<nme>", []any{"<nme>"}, map[string]any{"a": map[string]any{"b": "<name><nme>"}}} {
		if _, err := substitute(unknown, values); err == nil || !strings.Contains(err.Error(), "<nme>") {
			t.Errorf("%v: %v", unknown, err)
		}
	}
}
