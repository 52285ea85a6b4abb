package identity

import (
	"fmt"
	"slices"
	"testing"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestVoters is about the members that are asked for what is saved, which are not those that the
// servers use: before etcd shrinks to one member, servers use that one already.
func TestVoters(t *testing.T) {
	s := New(operandtest.New(t, "{spec: {etcd: {replicas: 1}}}"))
	ids := func(ordinals ...int) etcd.Identity {
		out := etcd.Identity{Members: map[string]string{}}
		for _, ordinal := range ordinals {
			out.Members[fmt.Sprintf("fleet-etcd-%d", ordinal)] = fmt.Sprintf("a%d", ordinal)
		}
		return out
	}
	zero, one, two := "fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"
	for _, test := range []struct {
		reason string
		record *etcd.Record
		want   []string
	}{
		{"there is no record yet", nil, []string{zero}},
		{"etcd has not formed yet", &etcd.Record{Replicas: 3}, []string{zero, one, two}},
		{"servers use one of three", &etcd.Record{Replicas: 3, Endpoints: 1, Identity: ids(0, 1, 2)}, []string{zero, one, two}},
		{"one is about to be added", &etcd.Record{Replicas: 1, Joining: one, Identity: ids(0)}, []string{zero}},
		{"one is a learner", &etcd.Record{Replicas: 2, Joining: one, Identity: ids(0, 1)}, []string{zero}},
		{"one leaves", &etcd.Record{Replicas: 3, Leaving: two, Identity: ids(0, 1, 2)}, []string{zero, one}},
		{"one in the middle was removed", &etcd.Record{Replicas: 3, Identity: ids(0, 2)}, []string{zero, two}},
	} {
		if s.Record = test.record; !slices.Equal(s.Voters(), test.want) {
			t.Errorf("%s: %q, want %q", test.reason, s.Voters(), test.want)
		}
	}
	external := New(operandtest.New(t, "{spec: {etcd: {external: {endpoints: ['https://a:1']}}}}"))
	if got := external.Voters(); got != nil {
		t.Errorf("with an external etcd: %q", got)
	}
}
