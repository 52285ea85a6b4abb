package render

import (
	"strings"
	"testing"
)

// TestRenderRepeats looks for an order that maps leave to chance, which would
// write to the host without end.
func TestRenderRepeats(t *testing.T) {
	for variant, in := range variants(t) {
		in.Addresses = []string{"b.example", "a.example", "192.0.2.1"}
		first := rendered(t, in)
		for range 3 { // for each of dozens of variants
			builds = newMemory() // as that of another operator
			again := rendered(t, in)
			if again.Digest != first.Digest {
				t.Fatalf("%s: the digest was %s, and is %s", variant, first.Digest, again.Digest)
			}
		}
		in.HostVersion, in.Trust.Serving = "1.36", []byte("another\n")
		if rendered(t, in).Digest == first.Digest {
			t.Errorf("%s: the digest is the same for other content", variant)
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
