package equality

import (
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// TestDeepEqual: bytes are compared by their content, and no bytes are like none.
func TestDeepEqual(t *testing.T) {
	with := func(bundle []byte) clusterregistry.Endpoint { return clusterregistry.Endpoint{CABundle: bundle} }
	for _, c := range []struct {
		a, b  []byte
		equal bool
	}{
		{nil, []byte{}, true},
		{[]byte("ab"), []byte("ab"), true},
		{[]byte("ab"), []byte("ac"), false},
		{[]byte("ab"), nil, false},
	} {
		if DeepEqual(with(c.a), with(c.b)) != c.equal {
			t.Errorf("%q and %q: equal is not %v", c.a, c.b, c.equal)
		}
	}
}
