package equality

import (
	"reflect"
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

// TestBytesAtOnce compares bytes by a function, which says the same as looking at each of them.
func TestBytesAtOnce(t *testing.T) {
	if _, ok := semantic.Equalities[reflect.TypeFor[[]byte]()]; !ok {
		t.Error("a CA bundle is compared by reflection, byte by byte")
	}
}
