package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/defragmentation"
)

// TestDefragmentation has the operator's defragmentation go through three members with much
// free space, while clients of a registry write: none of their requests fails, and all that
// was acknowledged is there.
func TestDefragmentation(t *testing.T) {
	host, flags := framework.StartReadyHost(t, newest)
	members := framework.StartEtcdVersion(t, "v3.7.3", 3)
	access := accessTo(members)
	_, recorded := recordIdentity(t, access, 3)
	fragment(t, members)
	registry := framework.StartRegistry(t, slices.Concat(flags, members.Flags())...)
	registry.WaitReady(t)
	config := direct(host.Config, registry)
	config.QPS = -1
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	framework.Eventually(t, "the server to know its administrator", func(ctx context.Context) error {
		_, err := clusters.List(ctx, metav1.ListOptions{})
		return err
	})
	load := framework.StartLoad(t, config, leaderRate)
	load.Settle(t)
	load.Mark("defragmentation")
	leader := ""
	for _, member := range access.Observe(t.Context()).Members {
		if member.Leads() {
			leader = member.Name
		}
	}
	done := defragmentAll(t, access, recorded)
	load.Mark("after")
	load.Settle(t)
	report := load.Stop()
	t.Logf("%s; %v were defragmented in this order, led by %s", report, done, leader)
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	compare(t, clusters, report)
	if len(done) != 3 || done[2] != leader {
		t.Errorf("%v were defragmented, led by %s", done, leader)
	}
	for _, member := range access.Observe(t.Context()).Members {
		if member.Fragmented() || member.DBSize > 100<<20 {
			t.Errorf("%s still has %d of %d bytes in use", member.Name, member.DBSizeInUse, member.DBSize)
		}
	}
	if err := access.Agree(t.Context()); err != nil {
		t.Error(err)
	}
}

// fragment has all members hold much that is free.
func fragment(t *testing.T, members *framework.Etcd) {
	t.Helper()
	value, last := strings.Repeat("x", 1<<20), int64(0)
	for range 160 {
		answer, err := members.Client.Put(t.Context(), "/fragments", value)
		if err != nil {
			t.Fatal(err)
		}
		last = answer.Header.Revision
	}
	if _, err := members.Client.Compact(t.Context(), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "all members to have free space", func(ctx context.Context) error {
		// Pages that a transaction frees count as free from a later one on.
		if _, err := members.Client.Put(ctx, "/fragments", "little"); err != nil {
			return err
		}
		for _, member := range accessTo(members).Observe(ctx).Members {
			if !member.Fragmented() {
				return fmt.Errorf("%s has %d of %d bytes in use", member.Name, member.DBSizeInUse, member.DBSize)
			}
		}
		return nil
	})
}

// defragmentAll plays the operator, which observes etcd again in each reconcile, and returns the
// members in the order in which they were defragmented. A minute passes for it between two
// reconciles.
func defragmentAll(t *testing.T, access etcd.Access, recorded etcd.Identity) (done []string) {
	t.Helper()
	status := &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation}
	now := time.Now()
	operation.Enter(status, operatorv1alpha1.PhasePreflight, now)
	known := []operatorv1alpha1.EtcdMember{{Name: "m0"}, {Name: "m1"}, {Name: "m2"}}
	framework.Eventually(t, "all members to be defragmented", func(ctx context.Context) error {
		now = now.Add(time.Minute)
		handler := defragmentation.Handler{Operation: status, Members: known, Now: now, State: access.Observe(ctx), Recorded: recorded, Event: func(string) {},
			Defragment: func(ctx context.Context, member string) error {
				done = append(done, member)
				started := time.Now()
				err := access.Defragment(ctx, member)
				t.Logf("%s was defragmented in %s: %v", member, time.Since(started).Round(time.Millisecond), err)
				return err
			}}
		driver := operation.Driver{Status: status, Recorded: status.DeepCopy(), Now: now}
		if v, progress := driver.Advance(ctx, handler); progress != operation.Completed {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	return done
}
