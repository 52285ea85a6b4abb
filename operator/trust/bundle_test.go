package trust_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// TestUnion keeps a bundle as a person has written it, and adds each certificate that
// it lacks once.
func TestUnion(t *testing.T) {
	later := time.Now().Add(time.Hour)
	a, b := trusttest.NewCA(t, later).PEM, trusttest.NewCA(t, later).PEM
	noted := join([]byte("# ours\n"), a)
	for _, test := range []struct {
		reason              string
		bundle, other, want []byte
	}{
		{"both are the same", a, a, a},
		{"another one follows", a, b, join(a, b)},
		{"it is there twice", a, join(b, b), join(a, b)},
		{"comments stay", noted, a, noted},
		{"the last line does not end", bytes.TrimSuffix(a, []byte("\n")), b, join(a, b)},
		{"what is no certificate is not added", a, []byte("nonsense"), a},
	} {
		before := string(test.bundle)
		if got := trust.Union(test.bundle, test.other); string(got) != string(test.want) || string(test.bundle) != before {
			t.Errorf("%s:\n%s", test.reason, got)
		}
	}
}

// TestValid leaves out what no client would accept.
func TestValid(t *testing.T) {
	now := time.Now()
	ended, a := trusttest.NewCA(t, now.Add(-time.Minute)).PEM, trusttest.NewCA(t, now.Add(time.Hour)).PEM
	for reason, test := range map[string]struct{ bundle, want []byte }{
		"an expired CA is left out":    {join(ended, a), a},
		"all have expired":             {ended, nil},
		"and so is what is none":       {join([]byte("nonsense\n"), a), a},
		"there is nothing in a bundle": {nil, nil},
	} {
		if got := trust.Valid(test.bundle, now); string(got) != string(test.want) {
			t.Errorf("%s:\n%s", reason, got)
		}
	}
}

// TestNonEmpty never lets a text count as a bundle that has no certificate.
func TestNonEmpty(t *testing.T) {
	a := trusttest.NewCA(t, time.Now().Add(time.Hour)).PEM
	if got := trust.NonEmpty(join([]byte("# ours\n"), a)); !bytes.HasSuffix(got, a) || !bytes.HasPrefix(got, []byte("# ours")) {
		t.Errorf("a bundle is changed:\n%s", got)
	}
	broken := bytes.Replace(a, []byte("MII"), []byte("AAA"), 1)
	for _, bundle := range [][]byte{nil, {}, []byte("nonsense"), broken} {
		if got := trust.NonEmpty(bundle); got != nil {
			t.Errorf("%q counts as a bundle", got)
		}
	}
}

// TestKeyFingerprint renews a CA's certificate, which must not look like another CA.
func TestKeyFingerprint(t *testing.T) {
	later := time.Now().Add(time.Hour)
	ca := trusttest.NewCA(t, later)
	before, renewed, other := ca.PEM, ca.Renewed().PEM, trusttest.NewCA(t, later).PEM
	if bytes.Equal(before, renewed) || trust.KeyFingerprint(before) != trust.KeyFingerprint(renewed) {
		t.Error("a renewed certificate is taken for another CA")
	}
	if trust.KeyFingerprint(before) == trust.KeyFingerprint(other) || trust.KeyFingerprint(nil) == trust.KeyFingerprint(before) {
		t.Error("another key is taken for the same CA")
	}
	if trust.KeyFingerprint([]byte("a")) == trust.KeyFingerprint([]byte("b")) {
		t.Error("two texts without a certificate are taken for the same CA")
	}
}
