package etcd

import (
	"errors"
	"testing"
)

// TestFragmented is about both bounds: little is not worth the interruption.
func TestFragmented(t *testing.T) {
	for _, test := range []struct {
		reason      string
		size, inUse int64 // in MiB
		err         error
		want        bool
	}{
		{"both are reached", 200, 100, nil, true},
		{"most of it, which is little", 99, 0, nil, false},
		{"much, which is a small part", 1000, 600, nil, false},
		{"just enough of it", 1000, 550, nil, true},
		{"it does not serve", 200, 100, errors.New("down"), false},
		{"nothing is known", 0, 0, nil, false},
	} {
		if got := (Member{DBSize: test.size << 20, DBSizeInUse: test.inUse << 20, Err: test.err}).Fragmented(); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}
