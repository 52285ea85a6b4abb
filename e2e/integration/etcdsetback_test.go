package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestEtcdSetBack sets the volume of one of three members back to an older copy, while the leader
// knows what that member has acknowledged: it ends each time that it is started, and the operator
// understands from what kubelet keeps of its last words that it has to be replaced. The others go
// on.
func TestEtcdSetBack(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			// The leader stays: a new one brings a follower up to date that was set back.
			testSetBack(t, framework.StartEtcdVersion(t, version, 3, "--election-timeout=10000"))
		})
	}
}

func testSetBack(t *testing.T, members *framework.Etcd) {
	access := accessTo(members)
	recordIdentity(t, access, 3)
	follower := slices.IndexFunc(access.Observe(t.Context()).Members, func(m etcd.Member) bool { return m.ID != m.Leader })
	write := func(name string) (revision int64) {
		for i := range 40 {
			revision = put(t, members, fmt.Sprint(name, i), "value")
		}
		return revision
	}
	write("before")
	saved := copyOf(t, members, follower)
	allHave(t, access, write("lost"))
	members.Kill(follower)
	setBack(t, members.DataDirs[follower], saved)
	for start := range 2 {
		members.Start(follower)
		words := members.Words(follower)
		for what, kept := range map[string]string{"all": words, "the end": words[max(0, len(words)-2048):]} {
			if end, _ := diagnose.LastWords(kept); end != diagnose.Behind {
				t.Errorf("start %d: of %s of what it printed, it is not understood that its volume was set back:\n%s", start, what, kept)
			}
		}
		members.Kill(follower)
	}
	observed(t, access, write("after"))
}
