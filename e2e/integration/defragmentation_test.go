package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/defragmentation"
)

// defragmentationRate is how many requests are sent in a second during a defragmentation,
// beside other tests.
const defragmentationRate = 50

// TestDefragmentation has the operator's defragmentation go through three members with much
// free space, while clients of a registry write: none of their requests fails, and all that
// was acknowledged is there.
func TestDefragmentation(t *testing.T) {
	t.Parallel()
	members := framework.StartEtcdVersion(t, "v3.7.3", 3)
	access := accessTo(members)
	_, recorded := recordIdentity(t, access, 3)
	fragment(t, members)
	_, _, config := independentOn(t, members)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	load := framework.StartLoad(t, config, defragmentationRate, framework.Pending(2*defragmentationRate))
	load.Settle(t)
	load.Mark("defragmentation")
	done := defragmentAll(t, access, recorded)
	load.Mark("after")
	load.Settle(t)
	report := load.Stop()
	t.Logf("%s; %v were defragmented in this order", report, done)
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	compare(t, clusters, report)
	if len(done) != 3 {
		t.Errorf("%v were defragmented", done)
	}
	for _, member := range access.Observe(t.Context()).Members {
		if member.Fragmented() || member.DBSize > 100<<20 {
			t.Errorf("%s still has %d of %d bytes in use", member.Name, member.DBSizeInUse, member.DBSize)
		}
	}
	expectAgreed(t, access)
}

// fragment has all members hold much that is free.
func fragment(t *testing.T, members *framework.Etcd) {
	t.Helper()
	value, last := strings.Repeat("x", 1<<20), int64(0)
	for range 160 {
		last = put(t, members, "/fragments", value)
	}
	compact(t, members, last)
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

// maintainer plays the operator, which observes etcd again in each reconcile. A minute passes
// for it between two reconciles.
type maintainer struct {
	access    etcd.Access
	recorded  etcd.Identity
	status    *operatorv1alpha1.Operation // nil while none is under way
	etcd      operatorv1alpha1.EtcdStatus
	revisions etcd.Revisions
	now       time.Time
	// done are the members in the order in which they were defragmented.
	done []string
}

func newMaintainer(access etcd.Access, recorded etcd.Identity) *maintainer {
	m := &maintainer{access: access, recorded: recorded, now: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(recorded.Members)) {
		m.etcd.Members = append(m.etcd.Members, operatorv1alpha1.EtcdMember{Name: name})
	}
	return m
}

// reconcile begins a defragmentation where one is due, or takes it one step further, and
// says what it waits for. It expects the leader to be the last.
func (m *maintainer) reconcile(ctx context.Context, t *testing.T) string {
	t.Helper()
	m.now = m.now.Add(time.Minute)
	state := m.access.Observe(ctx)
	m.revisions.Note("etcd", etcd.Seen{Revision: state.Revision(), Time: m.now})
	handler := defragmentation.Handler{Operation: m.status, Etcd: &m.etcd, Now: m.now, State: state, Recorded: m.recorded, Old: m.revisions.Old("etcd", m.now),
		Event: func(_, _, message string) { t.Log(message) }, Compact: m.access.Compact,
		Defragment: func(ctx context.Context, member string) error {
			m.done = append(m.done, member)
			leader := slices.IndexFunc(state.Members, etcd.Member.Leads)
			if leader < 0 || state.Members[leader].Name == member && len(m.done) < len(m.recorded.Members) {
				t.Errorf("the leader is not the last: %v were defragmented, of %+v", m.done, state.Members)
			}
			started := time.Now()
			err := m.access.Defragment(ctx, member)
			t.Logf("%s was defragmented in %s: %v", member, time.Since(started).Round(time.Millisecond), err)
			return err
		}}
	if m.status == nil {
		if !handler.Due() {
			return fmt.Sprintf("nothing is due: %+v", state)
		}
		m.status = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation}
		operation.Enter(m.status, operatorv1alpha1.PhasePreflight, m.now)
		return "it begins"
	}
	driver := operation.Driver{Status: m.status, Recorded: m.status.DeepCopy(), Now: m.now}
	v, progress := driver.Advance(ctx, handler)
	if progress == operation.Completed {
		m.status = nil
	}
	return v.Message
}

// defragmentAll returns the members in the order in which they were defragmented. One that
// does not answer for a moment is not known to need it, so it ends only when all say that
// they don't.
func defragmentAll(t *testing.T, access etcd.Access, recorded etcd.Identity) []string {
	t.Helper()
	m := newMaintainer(access, recorded)
	framework.Eventually(t, "all members to be defragmented", func(ctx context.Context) error {
		if says := m.reconcile(ctx, t); len(m.done) == 0 || m.status != nil {
			return errors.New(says)
		}
		for _, member := range access.Observe(ctx).Members {
			if member.Err != nil {
				return fmt.Errorf("%s: %w", member.Name, member.Err)
			}
			if member.Fragmented() {
				return fmt.Errorf("%s: %d of %d bytes are in use", member.Name, member.DBSizeInUse, member.DBSize)
			}
		}
		return nil
	})
	return m.done
}
