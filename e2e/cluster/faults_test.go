package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

func TestPartitionAndHeal(t *testing.T) {
	e := framework.New(t)
	set, service := store(t, 3)
	e.Create(service, set)
	waitReady(e, pods...)
	victim, _ := node(t, e, "store-2")
	isReady := func(want bool) {
		e.Eventually(fmt.Sprintf("node %s to have Ready=%t", victim, want), func(ctx context.Context) error {
			ready, err := e.NodeReady(ctx, victim)
			if err == nil && ready != want {
				err = fmt.Errorf("Ready is %t", ready)
			}
			return err
		})
	}
	e.Node("partition", victim)
	isReady(false)
	if out, err := framework.TryCluster(t.Context(), framework.Root(t), "status"); err == nil || !strings.Contains(out, "partitioned") {
		t.Errorf("status of a partitioned cluster gave %v: %s", err, out)
	}
	framework.Cluster(t, "node", "heal", victim)
	isReady(true)
	waitReady(e, pods...)
}

func TestFaultsOfUnknownNodes(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"up --provider kind", "was made by provider local, not kind"},
		{"up --nodes 5", "has 3 nodes, not 5; take it down first"},
		{"up --kubernetes-version v1.1", "Kubernetes v1.1 is no version of a cluster here; choose one of [v1.37.1"},
		{"node stop n99", "has no node \"n99\"; its nodes are n1 to n3"},
		{"node start nonsense", "has no node \"nonsense\""},
		{"--name absent node stop n1", "there is no cluster \"absent\" here"},
		{"--name Bad! status", "use lower-case letters"},
		{"load absent.tar", "absent.tar"},
	} {
		out, err := framework.TryCluster(t.Context(), framework.Root(t), strings.Fields(test.args)...)
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("%s: got %v, want %q in: %s", test.args, err, test.want, out)
		}
	}
}

// TestNobodyButRoot runs the command as an ordinary user: no provider can be
// had, and the message says why for each.
func TestNobodyButRoot(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(framework.Root(t), "bin", "cluster"), "--name", "mine", "up")
	cmd.Dir = framework.Root(t)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("it went through: %s", out)
	}
	for _, want := range []string{"no provider can run here", "local: not root", "run the command with sudo", "kind: the command kind is not on $PATH", "--provider existing"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in: %s", want, out)
		}
	}
}
