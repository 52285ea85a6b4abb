package trust_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestAuthority is about what is published of a CA that was replaced.
func TestAuthority(t *testing.T) {
	later := time.Now().Add(time.Hour)
	a, b := trusttest.NewCA(t, later).PEM, trusttest.NewCA(t, later).PEM
	for _, test := range []struct {
		reason              string
		current, published  []byte
		want                []byte
		announced, replaced bool
	}{
		{"nothing was published yet", a, nil, a, false, false},
		{"all is as it was", a, a, a, true, false},
		{"the CA was replaced", b, a, join(b, a), false, true},
		{"and both are published", b, join(b, a), join(b, a), true, true},
		{"the CA is missing", nil, a, a, true, true},
		{"a CA is added to spec.tls.caBundle", join(a, b), a, join(a, b), false, false},
		{"what is published is nonsense", a, []byte("nonsense"), a, false, false},
		{"there is nothing at all", nil, nil, nil, true, false},
	} {
		got := trust.Authority{Current: test.current, Published: test.published}
		if string(got.Bundle()) != string(test.want) {
			t.Errorf("%s: the bundle is\n%s", test.reason, got.Bundle())
		}
		if got.Announced() != test.announced || got.Replaced() != test.replaced {
			t.Errorf("%s: announced %v, replaced %v", test.reason, got.Announced(), got.Replaced())
		}
	}
}
