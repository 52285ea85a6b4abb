package recovery

import (
	"strings"
	"testing"
)

// TestJudge uses data where etcd's alarm CORRUPT names other members alone.
func TestJudge(t *testing.T) {
	p := newPod(t) // of member a1
	r := p.run(p.recovery)
	for _, test := range []struct {
		reason string
		named  []uint64
		says   string
	}{
		{"it is not raised", nil, ""},
		{"it names others", []uint64{0xa2, 0xa3}, ""},
		{"it names this one", []uint64{0xa2, 0xa1}, "etcd's alarm CORRUPT names it (ID a1): when the quorum was lost, its data differed from that of a majority, and is probably wrong. Set spec.recovery to another member or to a backup. If there is none, keep the volume of claim data-m0"},
		{"it names none", []uint64{0}, "etcd's alarm CORRUPT names no member: when the quorum was lost, the members held different data, and which of them was right is not known. Set spec.recovery"},
		{"it names another one, and none", []uint64{0xa2, 0}, "names no member"},
	} {
		if err := r.judge(test.named); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.says)
		}
	}
}
